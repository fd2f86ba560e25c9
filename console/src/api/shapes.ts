/** What the host answers, as far as the console reads it. Names as in the HTTP API. */
import type { RunStatus } from "../model/run";

export interface SessionEntry {
  threadId: string;
  title?: string;
  archived: boolean;
  closed: boolean;
  items: number;
  createdAt: string;
  updatedAt: string;
  /** The job that talks in it. */
  automationId?: string;
  /** Where the words of a search stand. */
  found?: { title?: Piece[]; message?: { itemId: string; role: "user" | "assistant"; agentId?: string; timestamp: string; snippet: Piece[] } };
}
/** A stretch of text, and whether it is what was looked for. */
export interface Piece {
  text: string;
  hit: boolean;
}
export interface Transaction {
  txId: string;
  kind: string;
  waiting: unknown;
  agentId?: string | null;
  turnId?: string | null;
  reason?: string | null;
  summary?: string | null;
  fromAgentId?: string | null;
}
export interface Inflight {
  turnId: string;
  targetAgentId: string;
  status: "QUEUED" | "ROUTING" | "RUNNING";
  createdAt: string | null;
  parentTurnId?: string | null;
}
export interface SessionLook extends SessionEntry {
  activeAgentId: string | null;
  agentsInSession: string[];
  speakingAgentId: string | null;
  inflight: Record<string, Inflight>;
  transactions: Record<string, Transaction>;
  cursor: string;
  inflightCursor: string;
}
export interface HistoryMessage {
  id: string;
  itemId?: string;
  taskId?: string;
  seq: number;
  role: "user" | "assistant";
  content: string;
  attachments?: { mimeType: string; url: string }[];
  ui_schema?: Record<string, unknown> | null;
  feedback?: { rating: "up" | "down"; comment?: string } | null;
  timestamp: string;
  agentId?: string;
  name?: string;
  /** Its run ended in the middle of it. */
  partial?: boolean;
  /** Its words were erased on purpose. */
  erased?: boolean;
}
export interface HistoryDay {
  threadId: string | null;
  day: string | null;
  hasMore: boolean;
  messages: HistoryMessage[];
}
export interface RunEntry {
  taskId: string;
  threadId: string;
  runId: string;
  agentId: string;
  runnerId?: string;
  userId?: string;
  status: RunStatus;
  code?: string;
  message?: string;
  createdAt: string;
  startedAt?: string;
  endedAt?: string;
  deadlineAt?: string;
  usage?: Usage;
}
export interface Usage {
  modelCalls: number;
  promptTokens: number;
  completionTokens: number;
  totalTokens: number;
  /** Null: only models without a price were asked. */
  cost: number | null;
  unpricedCalls?: number;
}
export interface Accepted {
  taskId: string;
  threadId: string;
  runId: string;
  created: boolean;
}
export interface AgentEntry {
  agentId: string;
  label: string;
  description?: string;
  runnerId: string;
  default: boolean;
  origin: "file" | "api" | "runner" | "built-in";
  health: "ok" | "problem" | "unknown";
  problem?: string;
  runnerLabel?: Localised;
  runnerDescription?: Localised;
  definition?: Record<string, unknown>;
}
export type Localised = string | Record<string, string>;
export interface Approval {
  approvalId: string;
  taskId: string;
  threadId: string;
  agentId: string;
  action: string;
  target: unknown;
  payload: unknown;
  status: "pending" | "granted" | "denied" | "expired";
  outcome?: string;
  detail?: string;
  createdAt: string;
  expiresAt: string;
}
export interface Me {
  userId: string;
  workspaceId: string;
  role: "user" | "admin";
  profile: { settings: { timezone: string | null; locale: string | null } };
}
