/**
 * One conversation as a page shows it: turns in order, who is here, what waits for an answer. Pure.
 *
 * It begins as a picture of one moment (`opened`), goes on with the frames of the session's stream (`reduceThread`) and
 * grows upwards by days (`withEarlier`). Each word comes from exactly one of the three, so none is lost or doubled:
 * turns that had ended by that moment come from history, all others from the stream, whole. A turn that is on the page
 * stays the turn it is, whatever is learned of it later (`withWhole`, `refreshed`): somebody may be busy with it.
 */
import type { HistoryDay, HistoryMessage, RunEntry, SessionLook, Transaction } from "../api/shapes";
import { asRecord, asText, type AgUiEvent } from "./events";
import { hasEnded, newRun, reduceRun, type Part, type Run } from "./run";

export interface Handover {
  txId: string;
  from: string;
  to: string;
  reason: string;
  summary: string;
}
export interface Thread {
  id: string;
  title: string | null;
  closed: boolean;
  turns: Run[];
  feedback: Record<string, "up" | "down">;
  members: string[];
  active: string | null;
  handover: Handover | null;
  day: string | null;
  hasMore: boolean;
  /** Facts up to this number are in the picture; the stream repeats of them only what unended turns said. */
  head: number;
  /** Turns that come from the stream, each with the number of the fact it began with (0: before the picture). */
  live: ReadonlyMap<string, number>;
}

export function emptyThread(id: string): Thread {
  return {
    id,
    title: null,
    closed: false,
    turns: [],
    feedback: {},
    members: [],
    active: null,
    handover: null,
    day: null,
    hasMore: false,
    head: 0,
    live: new Map(),
  };
}

export function opened(look: SessionLook, day: HistoryDay, runs: readonly RunEntry[]): Thread {
  const live = new Map(Object.keys(look.inflight).map((turn) => [turn, 0]));
  const head = Number(look.cursor);
  const settled = day.messages.filter((message) => message.seq <= head && !live.has(turnOf(message)));
  const asked = new Map(day.messages.filter((message) => message.role === "user").map((message) => [turnOf(message), message]));
  const going = Object.values(look.inflight).map((turn) => {
    const status = turn.status === "QUEUED" ? "queued" : "running";
    return newRun(turn.turnId, { agentId: turn.targetAgentId, status, parentTurnId: turn.parentTurnId ?? null, ...inputOf(asked.get(turn.turnId)) });
  });
  return {
    ...emptyThread(look.threadId),
    title: look.title ?? null,
    closed: look.closed,
    turns: [...turnsOf(settled, runs), ...going],
    feedback: feedbackOf(day.messages),
    members: look.agentsInSession,
    active: look.activeAgentId,
    handover: pendingHandover(Object.values(look.transactions)),
    day: day.day,
    hasMore: day.hasMore,
    head,
    live,
  };
}

export function withEarlier(thread: Thread, day: HistoryDay, runs: readonly RunEntry[]): Thread {
  const known = new Set(thread.turns.map((turn) => turn.turnId));
  const earlier = turnsOf(day.messages, runs).filter((turn) => !known.has(turn.turnId));
  return {
    ...thread,
    turns: [...earlier, ...thread.turns],
    feedback: { ...feedbackOf(day.messages), ...thread.feedback },
    day: day.day ?? thread.day,
    hasMore: day.hasMore,
  };
}

/** The run an item belongs to: items are named after it. */
export function turnOf(message: HistoryMessage): string {
  if (message.taskId) return message.taskId;
  const item = message.itemId ?? message.id;
  return item.slice(0, item.lastIndexOf("."));
}

function turnsOf(messages: readonly HistoryMessage[], runs: readonly RunEntry[]): Run[] {
  const rows = new Map(runs.map((run) => [run.taskId, run]));
  const turns = new Map<string, Run>();
  for (const message of messages) {
    const id = turnOf(message);
    const turn = turns.get(id) ?? newRun(id, { status: "completed", whole: false, ...ofRow(rows.get(id)) });
    turns.set(id, message.role === "user" ? { ...turn, ...inputOf(message) } : withAnswer(turn, message));
  }
  return [...turns.values()];
}

function ofRow(row: RunEntry | undefined): Partial<Run> {
  if (!row) return {};
  return {
    agentId: row.agentId,
    status: row.status,
    startedAt: Date.parse(row.startedAt ?? row.createdAt),
    endedAt: row.endedAt ? Date.parse(row.endedAt) : null,
    error: row.status === "failed" ? { code: row.code ?? "runtime_error", message: row.message ?? "" } : null,
    inputTokens: row.usage?.promptTokens ?? null,
    outputTokens: row.usage?.completionTokens ?? null,
  };
}

function inputOf(message: HistoryMessage | undefined): Partial<Run> {
  if (!message) return {};
  const attachments = (message.attachments ?? []).map(({ url, mimeType }) => ({ url, mimeType }));
  return { text: message.content, messageId: message.id, attachments, startedAt: Date.parse(message.timestamp), ...(message.erased ? { erased: true } : {}) };
}

function withAnswer(turn: Run, message: HistoryMessage): Run {
  const parts: Part[] = [...turn.parts, { kind: "text", id: message.id, text: message.content, open: false, ...(message.partial ? { cut: true } : {}), ...(message.erased ? { erased: true } : {}) }];
  if (message.ui_schema) parts.push({ kind: "card", id: `${message.id}:ui`, activity: "ui-schema", content: message.ui_schema });
  return { ...turn, parts, agentId: message.agentId ?? turn.agentId, endedAt: turn.endedAt ?? Date.parse(message.timestamp) };
}

function feedbackOf(messages: readonly HistoryMessage[]): Record<string, "up" | "down"> {
  return Object.fromEntries(messages.flatMap((message) => (message.feedback ? [[message.id, message.feedback.rating]] : [])));
}

function pendingHandover(transactions: readonly Transaction[]): Handover | null {
  const found = transactions.find((one) => one.kind === "handover" && String(one.waiting).toUpperCase().includes("CONFIRM"));
  if (!found) return null;
  return { txId: found.txId, from: found.fromAgentId ?? "", to: found.agentId ?? "", reason: found.reason ?? "", summary: found.summary ?? "" };
}

/** A new picture, with turns that were known whole before: they ended, and an end is final. */
export function withKnown(thread: Thread, before: Thread): Thread {
  const whole = new Map(before.turns.filter((turn) => turn.whole && hasEnded(turn)).map((turn) => [turn.turnId, turn]));
  if (!whole.size) return thread;
  const known = (turn: Run): Run => {
    const one = turn.whole ? undefined : whole.get(turn.turnId);
    return one ? { ...one, ...askedIn(turn) } : turn;
  };
  return { ...thread, turns: thread.turns.map(known) };
}

/**
 * The same conversation after its course changed, or an input came that only history tells. The stream goes on beside
 * this, so turns stay as they are; they get what was asked, and go when they were taken back. What began later than the
 * picture is not in it yet.
 */
export function refreshed(thread: Thread, look: SessionLook, days: readonly HistoryDay[]): Thread {
  const head = Number(look.cursor);
  const messages = days.flatMap((day) => day.messages);
  const told = new Set([...messages.map(turnOf), ...Object.keys(look.inflight)]);
  const asked = new Map(messages.flatMap((message) => (message.role === "user" ? [[turnOf(message), inputOf(message)] as const] : [])));
  const cut = thread.turns.findIndex((turn) => !told.has(turn.turnId) && turn.text !== null && beganBy(thread, turn, head));
  const stays = (turn: Run, index: number) => cut < 0 || index < cut || told.has(turn.turnId) || !beganBy(thread, turn, head);
  const turns = thread.turns.filter(stays).map((turn) => withInput(turn, asked.get(turn.turnId)));
  return { ...thread, turns, title: look.title ?? null, feedback: { ...thread.feedback, ...feedbackOf(messages) } };
}

/** How far back history has to be read to tell of every turn that is here. */
export function oldestDay(thread: Thread): string {
  const first = thread.turns.find((turn) => turn.startedAt !== null)?.startedAt ?? Date.now();
  return thread.day ?? new Date(first - 24 * 3_600_000).toISOString().slice(0, 10); // days are the person's, this is UTC's
}

function beganBy(thread: Thread, turn: Run, head: number): boolean {
  return (thread.live.get(turn.turnId) ?? 0) <= head;
}

function withInput(turn: Run, asked: Partial<Run> | undefined): Run {
  if (!asked || turn.text !== null) return turn;
  return { ...turn, text: asked.text ?? null, messageId: asked.messageId ?? null, attachments: asked.attachments ?? [] };
}

/** What was asked, as history has it: the stream of a run tells it only when it came by the door the page uses. */
function askedIn({ text, attachments, messageId }: Run): Partial<Run> {
  return { text, attachments, messageId };
}

/** A turn of history with all that its own stream tells; what was asked stays as history has it. */
export function withWhole(thread: Thread, turnId: string, events: readonly AgUiEvent[]): Thread {
  const index = thread.turns.findLastIndex((turn) => turn.turnId === turnId);
  const turn = thread.turns[index];
  if (!turn || turn.whole) return thread;
  const told = events.reduce(reduceRun, newRun(turnId, { agentId: turn.agentId }));
  const whole = hasEnded(told) ? { ...told, ...askedIn(turn), inputTokens: told.inputTokens ?? turn.inputTokens, outputTokens: told.outputTokens ?? turn.outputTokens } : { ...turn, whole: true };
  return { ...thread, turns: thread.turns.with(index, named(whole, thread.turns, index)) };
}

/** An answer to a call of an earlier turn names only the call; the tool's name is where the call is. */
function named(turn: Run, turns: readonly Run[], index: number): Run {
  if (!turn.parts.some((part) => part.kind === "tool" && !part.name)) return turn;
  const earlier = turns.slice(Math.max(0, index - NEAR), index).reverse();
  const nameOf = (id: string) => {
    for (const other of earlier) for (const part of other.parts) if (part.kind === "tool" && part.id === id && part.name) return part.name;
    return "";
  };
  return { ...turn, parts: turn.parts.map((part) => (part.kind === "tool" && !part.name ? { ...part, name: nameOf(part.id) } : part)) };
}
const NEAR = 20;

// --- the stream --------------------------------------------------------------------------------------------------

export interface SessionFrame {
  seq: number;
  event: AgUiEvent;
}

export function reduceThread(thread: Thread, { seq, event }: SessionFrame): Thread {
  const turnId = asText(asRecord(event.metadata).turnId);
  if (turnId) return ofTurn(thread, turnId, seq, event);
  return seq > thread.head && event.type === "CUSTOM" ? ofSession(thread, asText(event.name), asRecord(event.value)) : thread;
}

function ofTurn(thread: Thread, turnId: string, seq: number, event: AgUiEvent): Thread {
  let known = thread;
  if (!thread.live.has(turnId)) {
    const begins = event.type === "RUN_STARTED" && seq > thread.head;
    if (!begins) return thread; // it had ended by the moment of the picture: history has it
    known = { ...thread, live: new Map([...thread.live, [turnId, seq]]), turns: [...thread.turns, newRun(turnId)] };
  }
  const index = known.turns.findLastIndex((turn) => turn.turnId === turnId);
  const turn = known.turns[index];
  if (!turn) return known;
  const said = asRecord(event.value);
  const prompt = event.type === "CUSTOM" && event.name === "paddock.handover.prompt" && seq > thread.head;
  const reduced = reduceRun(turn, event);
  const next = { ...known, turns: known.turns.with(index, event.type === "TOOL_CALL_RESULT" ? named(reduced, known.turns, index) : reduced) };
  return prompt ? { ...next, handover: readPrompt(said) } : next;
}

function readPrompt(said: Record<string, unknown>): Handover {
  return {
    txId: asText(said.tx_id),
    from: asText(said.from_agent_id),
    to: asText(said.target_agent_id),
    reason: asText(said.reason),
    summary: asText(said.summary),
  };
}

function ofSession(thread: Thread, name: string, told: Record<string, unknown>): Thread {
  const payload = asRecord(told.payload);
  const agent = asText(payload.agent_id);
  switch (name.replace("paddock.session.", "")) {
    case "agent_added":
      return thread.members.includes(agent) ? thread : { ...thread, members: [...thread.members, agent] };
    case "agent_removed_local":
    case "agent_removed":
      return { ...thread, members: thread.members.filter((member) => member !== agent) };
    case "switch_agent":
      return { ...thread, active: asText(payload.to) || null };
    case "turn_accepted":
      return answeredBy(thread, asText(told.turnId), agent);
    case "handover_confirm":
    case "handover_reject":
      return { ...thread, handover: null };
    case "session_opened":
      return { ...thread, closed: false };
    case "session_closed":
      return { ...thread, closed: true };
    default:
      return thread;
  }
}

function answeredBy(thread: Thread, turnId: string, agentId: string): Thread {
  const index = thread.turns.findLastIndex((turn) => turn.turnId === turnId);
  const turn = thread.turns[index];
  if (!turn || turn.status !== "queued") return thread;
  return { ...thread, turns: thread.turns.with(index, { ...turn, agentId, status: "running", position: null }) };
}
