/**
 * One run as its AG-UI events tell it: `reduceRun(run, event) -> run`.
 *
 * Pure and total: no clock, no requests, no exceptions, whatever comes. An event changes only what it names, so every
 * prefix of a stream is a picture that can be shown. Values that did not change keep their identity.
 */
import { asList, asRecord, asText, type AgUiEvent } from "./events";

export type RunStatus = "queued" | "running" | "completed" | "failed" | "cancelled";

export interface TextPart {
  kind: "text" | "reasoning";
  id: string;
  text: string;
  open: boolean;
  /** The words break off: the run ended in the middle of them. */
  cut?: boolean;
  /** Its words were erased on purpose. */
  erased?: boolean;
}
export interface ToolPart {
  kind: "tool";
  id: string;
  name: string;
  args: string;
  open: boolean;
  result: string | null;
  failed: boolean;
}
export interface CardPart {
  kind: "card";
  id: string;
  activity: string;
  content: Record<string, unknown>;
}
export interface StepPart {
  kind: "step";
  id: string;
  name: string;
  open: boolean;
}
export interface NotePart {
  kind: "note";
  id: string;
  name: string;
  value: unknown;
}
export type Part = TextPart | ToolPart | CardPart | StepPart | NotePart;

export interface Attachment {
  /** Signed for a while; empty where only the id is told, which gets a fresh one. */
  url: string;
  id?: string;
  mimeType: string;
  name?: string;
}
export interface Interrupt {
  id: string;
  reason: string;
  message: string;
  toolCallId: string | null;
  responseSchema: Record<string, unknown> | null;
}
export interface Run {
  turnId: string;
  agentId: string | null;
  status: RunStatus;
  startedAt: number | null;
  endedAt: number | null;
  messageId: string | null;
  text: string | null;
  /** The words of who asked were erased on purpose. */
  erased?: boolean;
  attachments: Attachment[];
  parts: Part[];
  error: { code: string; message: string } | null;
  interrupts: Interrupt[];
  pendingToolCallIds: string[];
  inputTokens: number | null;
  outputTokens: number | null;
  position: number | null;
  steeredInto: string | null;
  parentTurnId: string | null;
  /** All of it is here: what history tells is only what was said, without tools, steps and cards. */
  whole: boolean;
}

export function newRun(turnId: string, known: Partial<Run> = {}): Run {
  return {
    turnId,
    agentId: null,
    status: "queued",
    startedAt: null,
    endedAt: null,
    messageId: null,
    text: null,
    attachments: [],
    parts: [],
    error: null,
    interrupts: [],
    pendingToolCallIds: [],
    inputTokens: null,
    outputTokens: null,
    position: null,
    steeredInto: null,
    parentTurnId: null,
    whole: true,
    ...known,
  };
}

export function hasEnded(run: Run): boolean {
  return run.status === "completed" || run.status === "failed" || run.status === "cancelled";
}

/** Half an answer: it was stopped, it failed, or its words break off for a reason that is not on record here. */
export function isUnfinished(run: Run): boolean {
  return run.status === "failed" || run.status === "cancelled" || (hasEnded(run) && run.parts.some((part) => part.kind === "text" && part.cut === true));
}

/** What a part is called as long as the page lives, whether history tells it or the stream. No two of a run are called the same. */
export function keyOf(part: Part): string {
  return `${part.kind}:${part.id}`;
}

export function reduceRun(run: Run, event: AgUiEvent): Run {
  if (hasEnded(run)) return run; // nothing follows an end
  switch (event.type) {
    case "RUN_STARTED":
      return started(run, event);
    case "RUN_FINISHED":
      return finished(run, event);
    case "RUN_ERROR":
      return failed(run, event);
    case "TEXT_MESSAGE_START":
      return working(open(run, textPart("text", asText(event.messageId))));
    case "TEXT_MESSAGE_CONTENT":
    case "TEXT_MESSAGE_CHUNK":
      return working(said(run, "text", event));
    case "TEXT_MESSAGE_END":
      return close(run, "text", asText(event.messageId), asRecord(event.metadata).partial === true, asRecord(event.metadata).erased === true);
    case "REASONING_MESSAGE_START":
      return working(open(run, textPart("reasoning", asText(event.messageId))));
    case "REASONING_MESSAGE_CONTENT":
    case "REASONING_MESSAGE_CHUNK":
      return working(said(run, "reasoning", event));
    case "REASONING_MESSAGE_END":
      return close(run, "reasoning", asText(event.messageId));
    case "TOOL_CALL_START":
      return working(open(run, toolPart(asText(event.toolCallId), asText(event.toolCallName))));
    case "TOOL_CALL_ARGS":
    case "TOOL_CALL_CHUNK":
      return working(withArguments(run, event));
    case "TOOL_CALL_END":
      return close(run, "tool", asText(event.toolCallId));
    case "TOOL_CALL_RESULT":
      return working(answered(run, event));
    case "STEP_STARTED":
      return working({ ...run, parts: [...run.parts, stepPart(run, asText(event.stepName))] });
    case "STEP_FINISHED":
      return stepClosed(run, asText(event.stepName));
    case "ACTIVITY_SNAPSHOT":
      return working(card(run, event));
    case "CUSTOM":
      return custom(run, asText(event.name), event.value);
    default:
      return run;
  }
}

// --- beginning and end -------------------------------------------------------------------------------------------

function started(run: Run, event: AgUiEvent): Run {
  const message = asRecord(asList(asRecord(event.input).messages)[0]);
  const content = message.content;
  return {
    ...run,
    startedAt: run.startedAt ?? time(event),
    messageId: asText(message.id) || run.messageId,
    text: content === undefined ? run.text : message.erased === true ? "" : textOf(content),
    ...(message.erased === true ? { erased: true } : {}),
    attachments: content === undefined || run.attachments.length ? run.attachments : imagesOf(content),
    parentTurnId: asText(event.parentRunId) || run.parentTurnId,
  };
}

function finished(run: Run, event: AgUiEvent): Run {
  const outcome = asRecord(event.outcome);
  const usage = asList(event.usage).map(asRecord);
  return ended({
    ...run,
    status: outcome.type === "cancelled" ? "cancelled" : "completed",
    endedAt: time(event),
    interrupts: asList(outcome.interrupts).map(readInterrupt),
    pendingToolCallIds: asList(outcome.pendingToolCallIds).filter((id): id is string => typeof id === "string"),
    inputTokens: sum(usage, "inputTokens"),
    outputTokens: sum(usage, "outputTokens"),
  });
}

function failed(run: Run, event: AgUiEvent): Run {
  const code = asText(event.code) || "runtime_error";
  if (code === "cancelled") return ended({ ...run, status: "cancelled", endedAt: time(event) });
  return ended({ ...run, status: "failed", endedAt: time(event), error: { code, message: asText(event.message) } });
}

function ended(run: Run): Run {
  return { ...run, position: null, parts: run.parts.map((part) => ("open" in part && part.open ? { ...part, open: false } : part)) };
}

function readInterrupt(value: unknown): Interrupt {
  const raw = asRecord(value);
  return {
    id: asText(raw.id),
    reason: asText(raw.reason),
    message: asText(raw.message),
    toolCallId: asText(raw.toolCallId) || null,
    responseSchema: typeof raw.responseSchema === "object" ? asRecord(raw.responseSchema) : null,
  };
}

function sum(usage: Record<string, unknown>[], name: string): number | null {
  const counts = usage.map((entry) => entry[name]).filter((count): count is number => typeof count === "number");
  return counts.length ? counts.reduce((total, count) => total + count, 0) : null;
}

function time(event: AgUiEvent): number | null {
  return typeof event.timestamp === "number" ? event.timestamp : null;
}

// --- content -----------------------------------------------------------------------------------------------------

export function textOf(content: unknown): string {
  if (typeof content === "string") return content;
  return asList(content)
    .map(asRecord)
    .filter((block) => block.type === "text")
    .map((block) => asText(block.text))
    .join("");
}

function imagesOf(content: unknown): Attachment[] {
  return asList(content)
    .map(asRecord)
    .filter((block) => block.type === "image")
    .map((block) => {
      const source = asRecord(block.source);
      const about = asRecord(block.metadata);
      return { url: asText(source.value), id: asText(about.attachmentId), mimeType: asText(source.mimeType), name: asText(about.filename) };
    });
}

function textPart(kind: "text" | "reasoning", id: string): TextPart {
  return { kind, id, text: "", open: true };
}

function toolPart(id: string, name: string): ToolPart {
  return { kind: "tool", id, name, args: "", open: true, result: null, failed: false };
}

function stepPart(run: Run, name: string): StepPart {
  return { kind: "step", id: `step-${run.parts.length}`, name, open: true };
}

function working(run: Run): Run {
  return run.status === "running" ? run : { ...run, status: "running", position: null };
}

function open(run: Run, part: TextPart | ToolPart): Run {
  return find(run, part.kind, part.id) < 0 ? { ...run, parts: [...run.parts, part] } : run;
}

function find(run: Run, kind: Part["kind"], id: string): number {
  return run.parts.findLastIndex((part) => part.kind === kind && part.id === id);
}

function change<P extends Part>(run: Run, index: number, with_: (part: P) => P): Run {
  const part = run.parts[index];
  return part === undefined ? run : { ...run, parts: run.parts.with(index, with_(part as P)) };
}

function said(run: Run, kind: "text" | "reasoning", event: AgUiEvent): Run {
  const id = asText(event.messageId) || lastOpen(run, kind);
  const opened = open(run, textPart(kind, id));
  const delta = asText(event.delta);
  return change<TextPart>(opened, find(opened, kind, id), (part) => ({ ...part, text: part.text + delta }));
}

function lastOpen(run: Run, kind: Part["kind"]): string {
  return run.parts.findLast((part) => part.kind === kind && "open" in part && part.open)?.id ?? "";
}

function close(run: Run, kind: "text" | "reasoning" | "tool", id: string, cut = false, erased = false): Run {
  return change<TextPart | ToolPart>(run, find(run, kind, id), (part) => ({ ...part, open: false, ...(cut ? { cut } : {}), ...(erased ? { erased } : {}) }));
}

function withArguments(run: Run, event: AgUiEvent): Run {
  const id = asText(event.toolCallId) || lastOpen(run, "tool");
  const opened = open(run, toolPart(id, asText(event.toolCallName)));
  return change<ToolPart>(opened, find(opened, "tool", id), (part) => ({ ...part, args: part.args + asText(event.delta) }));
}

function answered(run: Run, event: AgUiEvent): Run {
  const id = asText(event.toolCallId);
  const result = typeof event.content === "string" ? event.content : textOf(event.content);
  const opened = open(run, toolPart(id, ""));
  return change<ToolPart>(opened, find(opened, "tool", id), (part) => ({
    ...part,
    open: false,
    result,
    failed: result.startsWith('{"error":'),
  }));
}

function stepClosed(run: Run, name: string): Run {
  const index = run.parts.findLastIndex((part) => part.kind === "step" && part.name === name && part.open);
  return change<StepPart>(run, index, (part) => ({ ...part, open: false }));
}

function card(run: Run, event: AgUiEvent): Run {
  const part: CardPart = {
    kind: "card",
    id: asText(event.messageId),
    activity: asText(event.activityType),
    content: asRecord(event.content),
  };
  const index = find(run, "card", part.id);
  return index < 0 ? { ...run, parts: [...run.parts, part] } : change<CardPart>(run, index, () => part);
}

function custom(run: Run, name: string, value: unknown): Run {
  const told = asRecord(value);
  switch (name) {
    case "paddock.turn.queued":
      return run.status === "queued" ? { ...run, position: typeof told.position === "number" ? told.position : null } : run;
    case "paddock.turn.steered":
      return { ...run, steeredInto: asText(told.steeredInto) };
    case "paddock.message.revised":
      return change<TextPart>(run, find(run, "text", asText(told.messageId)), (part) => ({ ...part, text: asText(told.content) }));
    default:
      return { ...run, parts: [...run.parts, { kind: "note", id: `note-${run.parts.length}`, name, value }] };
  }
}
