/** Turns and their parts stay what they are while history, replay and live stream hand over to each other. */
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import type { HistoryDay, HistoryMessage, SessionLook } from "../src/api/shapes";
import { FrameReader } from "../src/api/sse";
import { readEvent, type AgUiEvent } from "../src/model/events";
import { keyOf, newRun, reduceRun, type TextPart } from "../src/model/run";
import { oldestDay, opened, reduceThread, refreshed, withWhole, type SessionFrame, type Thread } from "../src/model/thread";

const STREAMS = ["echo", "tools", "steps", "cancelled", "crashed", "interrupt"];
const recorded = (name: string): AgUiEvent[] => new FrameReader().push(readFileSync(new URL(`./streams/${name}.txt`, import.meta.url), "utf8")).flatMap((frame) => readEvent(frame.data) ?? []);

/** A conversation in which one recorded run follows another, as the session's stream tells it. */
function framesOf(names: readonly string[]): SessionFrame[] {
  const all = names.flatMap((name) => recorded(name).map((event) => ({ ...event, metadata: { turnId: name } })));
  return all.map((event, index) => ({ seq: index + 1, event }));
}
const turnIn = ({ event }: SessionFrame): string => (event["metadata"] as { turnId: string }).turnId;
const ends = ({ event }: SessionFrame) => event.type === "RUN_FINISHED" || event.type === "RUN_ERROR";

function pictured(frames: SessionFrame[], head: number, taken: ReadonlySet<string> = new Set()): { look: SessionLook; day: HistoryDay } {
  const told = frames.filter((frame) => frame.seq <= head && !taken.has(turnIn(frame)));
  const begun = [...new Set(told.map(turnIn))];
  const live = begun.filter((turn) => !told.some((frame) => turnIn(frame) === turn && ends(frame)));
  const inflight = Object.fromEntries(live.map((turn) => [turn, { turnId: turn, traceId: turn, requestedBy: "user", targetAgentId: "x", status: "RUNNING" as const, createdAt: "", lastOutputAt: null, collectedOutput: turn, waiting: [], parentTurnId: null }]));
  const first = Math.min(head, ...live.map((turn) => frames.findIndex((frame) => turnIn(frame) === turn)));
  const look = { threadId: "t", archived: false, closed: false, items: 0, createdAt: "", updatedAt: "", activeAgentId: "x", agentsInSession: ["x"], speakingAgentId: null, userInterruptible: false, inflight, transactions: {}, cursor: String(head), inflightCursor: String(first) };
  return { look, day: { scope: "history_day", threadId: "t", day: "2026-01-01", hasMore: false, messages: begun.flatMap((turn) => historyOf(turn, told)) } };
}

function historyOf(turn: string, told: SessionFrame[]): HistoryMessage[] {
  const events = told.filter((frame) => turnIn(frame) === turn).map(({ event }) => event);
  const run = events.reduce(reduceRun, newRun(turn));
  const common = { seq: told.find((frame) => turnIn(frame) === turn)?.seq ?? 0, taskId: turn, timestamp: "2026-01-01T00:00:00Z" };
  const said = run.parts.filter((part): part is TextPart => part.kind === "text" && !part.open);
  const card = (id: string) => run.parts.find((part) => part.kind === "card" && part.id === `${id}:ui`);
  const answers = said.map((part) => ({ ...common, id: part.id, role: "assistant" as const, content: part.text, ui_schema: (card(part.id) as { content: Record<string, unknown> } | undefined)?.content ?? null }));
  return [{ ...common, id: run.messageId ?? `m-${turn}`, itemId: `${turn}.0`, role: "user", content: run.text ?? "", attachments: [] }, ...answers];
}

const keysOf = (thread: Thread): string[] => thread.turns.flatMap((turn) => [turn.turnId, ...turn.parts.map((part) => `${turn.turnId} ${keyOf(part)}`)]);
const isWithin = (few: string[], many: string[]): boolean => many.filter((key) => few.includes(key)).join() === few.join();

describe.each(STREAMS)("the recorded stream %s", (name) => {
  const events = recorded(name);

  test("calls no two parts the same, and every part the same in every prefix", () => {
    let before: string[] = [];
    for (let count = 1; count <= events.length; count += 1) {
      const keys = events.slice(0, count).reduce(reduceRun, newRun("t")).parts.map(keyOf);
      expect(new Set(keys).size).toBe(keys.length);
      expect(keys.slice(0, before.length)).toEqual(before);
      before = keys;
    }
  });

  test("keeps what history told under its name when the rest is learned", () => {
    const frames = framesOf([name]);
    const { look, day } = pictured(frames, frames.length);
    const thread = opened(look, day, []);
    const whole = withWhole(thread, name, events);
    expect(whole.turns[0]?.whole).toBe(true);
    expect(isWithin(keysOf(thread), keysOf(whole))).toBe(true);
  });
});

const FRAMES = framesOf(["tools", "interrupt", "steps"]);

test("wherever the page comes in, nothing on it is called otherwise later, or goes, or changes its place", () => {
  for (let head = 0; head <= FRAMES.length; head += 1) {
    const { look, day } = pictured(FRAMES, head);
    let thread = opened(look, day, []);
    for (const frame of FRAMES.filter(({ seq }) => seq > Number(look.inflightCursor))) {
      const next = reduceThread(thread, frame);
      expect(isWithin(keysOf(thread), keysOf(next))).toBe(true);
      thread = next;
    }
    expect(thread.turns.map((turn) => turn.turnId)).toEqual(["tools", "interrupt", "steps"]);
  }
});

test("history read again at any time, however old or new, leaves every turn as it is", () => {
  const start = pictured(FRAMES, 0);
  let thread = opened(start.look, start.day, []);
  for (let at = 0; at <= FRAMES.length; at += 1) {
    for (let head = 0; head <= FRAMES.length; head += 3) {
      const { look, day } = pictured(FRAMES, head);
      expect(refreshed(thread, look, [day]).turns).toEqual(thread.turns);
    }
    const frame = FRAMES[at];
    if (frame) thread = reduceThread(thread, frame);
  }
});

test("a turn that the stream told without its question gets it, and keeps its parts", () => {
  const silent = FRAMES.map(({ seq, event }) => ({ seq, event: { ...event, input: undefined } }));
  const start = pictured(FRAMES, 0);
  const thread = silent.reduce(reduceThread, opened(start.look, start.day, []));
  const { look, day } = pictured(FRAMES, FRAMES.length);
  const asked = refreshed(thread, look, [day]);
  expect(thread.turns.map((turn) => turn.text)).toEqual([null, null, null]);
  expect(asked.turns.every((turn) => turn.text)).toBe(true);
  asked.turns.forEach((turn, index) => expect(turn.parts).toBe(thread.turns[index]?.parts));
});

test("what was taken back goes, with all that followed; what began later stays", () => {
  const start = pictured(FRAMES, 0);
  const thread = FRAMES.reduce(reduceThread, opened(start.look, start.day, []));
  const { look, day } = pictured(FRAMES, FRAMES.length, new Set(["interrupt", "steps"]));
  expect(refreshed(thread, look, [day]).turns.map((turn) => turn.turnId)).toEqual(["tools"]);
  const first = FRAMES.find((frame) => turnIn(frame) === "steps")?.seq ?? 0;
  expect(refreshed(thread, { ...look, cursor: String(first - 1) }, [day]).turns.map((turn) => turn.turnId)).toEqual(["tools", "steps"]);
});

test("history is read as far back as the page goes", () => {
  const { look, day } = pictured(FRAMES, FRAMES.length);
  expect(oldestDay(opened(look, day, []))).toBe("2026-01-01");
  const began = Date.parse("2026-03-16T01:00:00Z");
  expect(oldestDay({ ...opened(look, { ...day, day: null }, []), turns: [newRun("a", { startedAt: began })] })).toBe("2026-03-15");
});
