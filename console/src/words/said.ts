/** What the host says by codes, in the language of the page. Its own sentence counts where there is no code we know. Pure. */
import { en, type WordKey } from "./en";
import type { Speaker } from "./index";

type T = Speaker["t"];

/** A word we have, else null: hosts may be newer than the page. */
export function known(key: string): WordKey | null {
  return key in en ? (key as WordKey) : null;
}

export interface Reason {
  code: string;
  params: Record<string, string>;
}

/** Why a host call was, or was not, granted. */
export function whyInWords(told: { because: string[]; reasons?: Reason[] }, t: T): string {
  const keys = told.reasons?.map((reason) => known(`why.${reason.code}`)) ?? [];
  if (!told.reasons?.length || keys.includes(null)) return told.because.join(" ");
  return told.reasons.map((reason) => t(known(`why.${reason.code}`) as WordKey, filling(reason.params, t))).join(" ");
}

/** Kinds and states are words too; an empty list is said to be one. */
function filling(params: Record<string, string>, t: T): Record<string, string> {
  const said = { ...params };
  if (said.kind !== undefined) said.kind = word(`why.kind.${said.kind}`, said.kind, t);
  if (said.status !== undefined) said.status = word(`status.${said.status}`, said.status, t);
  if (said.granted === "") said.granted = t("why.nothing");
  return said;
}

/** The reason of a decision in the audit. */
export function reasonInWords(row: { reason: string; reasonCode?: string; reasonParams?: Record<string, string> }, t: T): string {
  const key = row.reasonCode === undefined ? null : known(`reason.${row.reasonCode}`);
  return key ? t(key, filling(row.reasonParams ?? {}, t)) : row.reason;
}

function word(key: string, otherwise: string, t: T): string {
  const found = known(key);
  return found ? t(found) : otherwise;
}

/** A refusal: what kind it is in the language of the page, and the host's own sentence, which alone says what to do. */
export function refusalInWords(problem: { status: number; code: string; message: string }, t: T): string {
  if (problem.status === 0) return t("app.unreachable");
  const key = known(`problem.${problem.code}`);
  return key ? t(key, { detail: problem.message }) : problem.message;
}

/** What is not known is not zero, and is not told as if it were. */
export const UNKNOWN = "\u2013";

/** A cost, as far as it is known: calls of models without a price are not in it. */
export function costInWords({ cost, unpricedCalls = 0 }: { cost: number | null; unpricedCalls?: number }, { t, number }: Pick<Speaker, "t" | "number">): string {
  if (cost === null) return UNKNOWN;
  return unpricedCalls ? t("op.cost_at_least", { cost: number(cost) }) : number(cost);
}

/** A time in seconds, where some run took one. */
export function secondsInWords(seconds: number | undefined, took: Speaker["took"]): string {
  return seconds === undefined ? UNKNOWN : took(seconds * 1000);
}
