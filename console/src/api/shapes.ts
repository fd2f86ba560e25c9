/** The shapes of the HTTP API under the names the console has for them; what they are is in `types.ts`, which is generated. */
import type { SaidByAgent, SaidByUser } from "./types";

export type {
  Accepted,
  Agent as AgentEntry,
  Allowance,
  Approval,
  AuditedDecision,
  Automation,
  Base,
  CalendarOccurrence,
  Delivery,
  Document,
  Explanation,
  HistoryDay,
  IngestJob,
  InflightTurn as Inflight,
  KeyEntry,
  Me,
  OpenTransaction as Transaction,
  Piece,
  RunEntry,
  Runner as RunnerEntry,
  Session as SessionLook,
  SessionEntry,
  StoryEntry,
  TakenOver,
  Usage,
  UsageReport,
} from "./types";

/** What a user or an agent said; each has fields that the other has not. */
export type HistoryMessage = (SaidByUser & { [name in Exclude<keyof SaidByAgent, keyof SaidByUser>]?: undefined }) | (SaidByAgent & { [name in Exclude<keyof SaidByUser, keyof SaidByAgent>]?: undefined });
export type Localised = string | Record<string, string>;
