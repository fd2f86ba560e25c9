/** A conversation from a picture and a stream: each word once, wherever the page came in. */
import { expect, test } from "vitest";
import type { HistoryDay, HistoryMessage, SessionLook } from "../src/api/shapes";
import type { AgUiEvent } from "../src/model/events";
import { isUnfinished } from "../src/model/run";
import { opened, reduceThread, withEarlier, withKnown, withWhole, type SessionFrame, type Thread } from "../src/model/thread";

const say = (turn: string, ...deltas: string[]): AgUiEvent[] => [
  { type: "RUN_STARTED", runId: turn, input: { messages: [{ id: `m-${turn}`, role: "user", content: `ask ${turn}` }] } },
  { type: "TEXT_MESSAGE_START", messageId: `${turn}.1` },
  ...deltas.map((delta) => ({ type: "TEXT_MESSAGE_CONTENT", messageId: `${turn}.1`, delta })),
  { type: "TEXT_MESSAGE_END", messageId: `${turn}.1` },
  { type: "RUN_FINISHED", runId: turn },
];
const WHOLE: SessionFrame[] = ["a", "b"].flatMap((turn) => say(turn, "one ", "two ", "three").map((event) => ({ ...event, metadata: { turnId: turn } }))).map((event, index) => ({ seq: index + 1, event }));

function look(head: number): SessionLook {
  const told = WHOLE.filter((frame) => frame.seq <= head);
  const has = (turn: string, type: string) => told.some(({ event }) => event.type === type && (event["metadata"] as { turnId: string }).turnId === turn);
  const live = ["a", "b"].filter((turn) => has(turn, "RUN_STARTED") && !has(turn, "RUN_FINISHED"));
  const inflight = Object.fromEntries(live.map((turn) => [turn, { turnId: turn, traceId: turn, requestedBy: "user", targetAgentId: "x", status: "RUNNING" as const, createdAt: "", lastOutputAt: null, collectedOutput: turn, waiting: [], parentTurnId: null }]));
  const first = Math.min(head, ...live.map((turn) => WHOLE.findIndex(({ event }) => event["runId"] === turn)));
  return { threadId: "t", archived: false, closed: false, items: 0, createdAt: "", updatedAt: "", activeAgentId: "x", agentsInSession: ["x"], speakingAgentId: null, userInterruptible: false, inflight, transactions: {}, cursor: String(head), inflightCursor: String(first) };
}

/** History as it is when it is asked for a little later than the picture. */
function day(head: number): HistoryDay {
  const messages = WHOLE.filter(({ seq }) => seq <= head).flatMap(({ seq, event }): HistoryMessage[] => {
    const turn = (event["metadata"] as { turnId: string }).turnId;
    const common = { seq, taskId: turn, timestamp: "2026-01-01T00:00:00Z" };
    if (event.type === "RUN_STARTED") return [{ ...common, id: `m-${turn}`, itemId: `${turn}.0`, role: "user" as const, content: `ask ${turn}`, attachments: [] }];
    if (event.type === "TEXT_MESSAGE_END") return [{ ...common, id: `${turn}.1`, role: "assistant" as const, content: "one two three", ui_schema: null }];
    return [];
  });
  return { scope: "history_day", threadId: "t", day: "2026-01-01", hasMore: false, messages };
}

const told = (thread: Thread) => thread.turns.map((turn) => [turn.turnId, turn.text, turn.status, turn.parts.map((part) => (part.kind === "text" ? part.text : ""))]);
const EXPECTED = ["a", "b"].map((turn) => [turn, `ask ${turn}`, "completed", ["one two three"]]);

test("whenever the page comes in, and however late history answers, each word is there once", () => {
  for (let head = 0; head <= WHOLE.length; head += 1)
    for (let later = head; later <= WHOLE.length; later += 1) {
      const seen = look(head);
      const rest = WHOLE.filter(({ seq }) => seq > Number(seen.inflightCursor));
      expect(told(rest.reduce(reduceThread, opened(seen, day(later), [])))).toEqual(EXPECTED);
    }
});

test("a stream that is cut and taken up again at any frame comes to the same", () => {
  const start = opened(look(0), day(0), []);
  for (let cut = 0; cut <= WHOLE.length; cut += 1) {
    const before = WHOLE.slice(0, cut).reduce(reduceThread, start);
    expect(told(WHOLE.slice(cut).reduce(reduceThread, before))).toEqual(EXPECTED);
  }
});

test("members, the active agent and a handover follow what the session says", () => {
  const session = (name: string, payload: object) => ({ seq: 99, event: { type: "CUSTOM", name: `paddock.session.${name}`, value: { payload } } });
  let thread = opened(look(WHOLE.length), day(WHOLE.length), []);
  thread = [session("agent_added", { agent_id: "y" }), session("switch_agent", { from: "x", to: "y" })].reduce(reduceThread, thread);
  expect([thread.members, thread.active]).toEqual([["x", "y"], "y"]);
  thread = reduceThread(thread, session("agent_removed", { agent_id: "x" }));
  expect(thread.members).toEqual(["y"]);
});

test("an earlier day goes above, without what is there already", () => {
  const thread = opened(look(WHOLE.length), { ...day(WHOLE.length), hasMore: true }, []);
  const earlier = withEarlier(thread, { ...day(WHOLE.length), day: "2025-12-31", messages: [{ id: "z.1", taskId: "z", seq: 1, role: "assistant", content: "old", ui_schema: null, timestamp: "2025-12-31T00:00:00Z" }, ...day(4).messages] }, []);
  expect(earlier.turns.map((turn) => turn.turnId)).toEqual(["z", "a", "b"]);
});

test("a turn of history becomes whole with its own stream, and what was asked stays", () => {
  const thread = opened(look(WHOLE.length), day(WHOLE.length), []);
  const whole = withWhole(thread, "a", [...say("a", "one two three").slice(0, -1), { type: "TOOL_CALL_START", toolCallId: "c", toolCallName: "add" }, { type: "RUN_FINISHED" }]);
  expect(whole.turns[0]).toMatchObject({ whole: true, text: "ask a" });
  expect(whole.turns[0]?.parts.map((part) => part.kind)).toEqual(["text", "tool"]);
});

test("a new picture keeps what was known whole, and has what was asked from history", () => {
  const streamed = WHOLE.map(({ seq, event }) => ({ seq, event: { ...event, input: undefined } })).reduce(reduceThread, opened(look(0), day(0), []));
  expect(streamed.turns.map((turn) => turn.text)).toEqual([null, null]);
  const again = withKnown(opened(look(WHOLE.length), day(WHOLE.length), []), streamed);
  expect(told(again)).toEqual(EXPECTED);
  expect(again.turns.every((turn) => turn.whole)).toBe(true);
});

test("an answer to a call of an earlier turn has the tool's name", () => {
  const of = (turn: string, events: AgUiEvent[]) => events.map((event) => ({ ...event, metadata: { turnId: turn } }));
  const frames = [
    ...of("a", [{ type: "RUN_STARTED" }, { type: "TOOL_CALL_START", toolCallId: "c", toolCallName: "add" }, { type: "RUN_FINISHED" }]),
    ...of("b", [{ type: "RUN_STARTED" }, { type: "TOOL_CALL_RESULT", toolCallId: "c", content: "5" }, { type: "RUN_FINISHED" }]),
  ].map((event, index) => ({ seq: index + 1, event }));
  const thread = frames.reduce(reduceThread, opened(look(0), day(0), []));
  expect(thread.turns[1]?.parts[0]).toMatchObject({ kind: "tool", name: "add", result: "5" });
});

test("half an answer is known as one from history alone, and stays one when the whole run is learned", () => {
  const end = WHOLE.length;
  const { messages, ...rest } = day(end);
  const halved = { ...rest, messages: messages.map((message) => (message.id === "b.1" ? { ...message, partial: true } : message)) };
  const thread = opened(look(end), halved, []); // no row tells what became of its run
  expect(thread.turns.map(isUnfinished)).toEqual([false, true]);
  const cut = say("b", "one ").map((event) => (event.type === "TEXT_MESSAGE_END" ? { ...event, metadata: { partial: true } } : event.type === "RUN_FINISHED" ? { type: "RUN_ERROR", code: "host_lost" } : event));
  const learned = withWhole(thread, "b", cut).turns[1];
  expect(learned).toMatchObject({ status: "failed", parts: [{ kind: "text", text: "one ", cut: true }] });
});
