/** What the host says by codes is said in the language of the page; what has no code is the host's own sentence. */
import { expect, test } from "vitest";
import { speaker } from "../src/words";
import { inAll } from "../src/operate/usage";
import { costInWords, reasonInWords, refusalInWords, secondsInWords, UNKNOWN, whyInWords, type Reason } from "../src/words/said";

const { t: english } = speaker("en");
const { t: chinese } = speaker("zh");
const told: { because: string[]; reasons: Reason[] } = {
  because: ["The manifest asked for it.", "The run has ended (completed)."],
  reasons: [
    { code: "kind.missing", params: { name: "add", kind: "knowledge_bases", granted: "" } },
    { code: "ended", params: { status: "completed" } },
  ],
};

test("why a call was granted is told by codes and what fills them", () => {
  expect(whyInWords(told, chinese)).toBe("“add”不在智能体给予、且主机拥有的知识库之中；已授予：无。 此次运行已结束（完成），授权随之终止，因此现在的调用会被拒绝。");
  expect(whyInWords(told, english)).toContain("'add' is not among the knowledge bases that the agent gave it and the host has; granted are: none.");
});

test("a host that is older or newer than the page is told in its own words", () => {
  expect(whyInWords({ because: told.because }, chinese)).toBe(told.because.join(" "));
  expect(whyInWords({ ...told, reasons: [...told.reasons, { code: "moon", params: {} }] }, chinese)).toBe(told.because.join(" "));
  expect(reasonInWords({ reason: "it is full moon", reasonCode: "moon" }, chinese)).toBe("it is full moon");
  expect(reasonInWords({ reason: "it is full moon" }, chinese)).toBe("it is full moon");
});

test("reasons of decisions are told by codes", () => {
  expect(reasonInWords({ reason: "in the grant of the run", reasonCode: "in_the_grant", reasonParams: {} }, chinese)).toBe("在此次运行的授权之内");
  expect(reasonInWords({ reason: "asked before: pending", reasonCode: "asked_before", reasonParams: { status: "pending" } }, chinese)).toBe("此前已请求过：等待中");
});

test("a refusal is named in the language of the page and keeps the sentence that says what to do", () => {
  const refused = { status: 409, code: "conflict", message: "close it first" };
  expect(refusalInWords(refused, english)).toBe("close it first");
  expect(refusalInWords(refused, chinese)).toBe("与当前状态冲突。（close it first）");
  expect(refusalInWords({ ...refused, code: "moon" }, chinese)).toBe("close it first");
  expect(refusalInWords({ status: 0, code: "unreachable", message: "" }, chinese)).toContain("无法连接主机");
});

test("what is not known is not told as zero", () => {
  const words = speaker("en");
  expect(costInWords({ cost: null, unpricedCalls: 2 }, words)).toBe(UNKNOWN);
  expect(costInWords({ cost: 0.25, unpricedCalls: 1 }, words)).toBe("at least 0.25");
  expect(costInWords({ cost: 0 }, words)).toBe("0");
  expect(secondsInWords(undefined, words.took)).toBe(UNKNOWN);
  expect(secondsInWords(0.25, words.took)).toBe("250 ms");
});

test("a sum over models without a price is not known, and one over some is not whole", () => {
  const line = { modelCalls: 1, totalTokens: 10 };
  expect(inAll([{ ...line, cost: 0.5 }, { ...line, cost: null, unpricedCalls: 1 }])).toEqual({ modelCalls: 2, totalTokens: 20, cost: 0.5, unpricedCalls: 1 });
  expect(inAll([{ ...line, cost: null, unpricedCalls: 1 }]).cost).toBeNull();
  expect(inAll([]).cost).toBe(0);
});
