/** Conversations found by words, page by page. What was found stays while the next answer is on its way. */
import { useCallback, useEffect, useState } from "react";
import { get, type Problem } from "../api/client";
import type { SessionEntry } from "../api/shapes";
import { asProblem } from "../ui/data";
import type { SessionList as Page } from "../api/types";

export type { Page };

export const MOST_LETTERS = 200;
const PAUSE = 200;
const PAGE = 30;
/** While the host is still putting old conversations into its index, or cannot be reached. */
const LOOK_AGAIN = 1_500;

export interface Found extends Page {
  /** What `sessions` answer; null before the first answer. */
  query: string | null;
  busy: boolean;
  problem: Problem | null;
  more: () => void;
  again: () => void;
}

const NOTHING: Page & { query: string | null; problem: Problem | null } = { sessions: [], next: null, complete: true, query: null, problem: null };

/** Wait until somebody stops typing. */
export function useSettled(value: string): string {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), value ? PAUSE : 0);
    return () => clearTimeout(timer);
  }, [value]);
  return settled;
}

/** `query` empty asks nothing. */
export function useFound(query: string, archived: boolean): Found {
  const [found, setFound] = useState(NOTHING);
  const [round, setRound] = useState(0);
  const [before, setBefore] = useState<number | null>(null);
  const [busy, setBusy] = useState(false);
  useEffect(() => {
    setBefore(null);
    if (!query) {
      setFound(NOTHING);
      setBusy(false);
      return;
    }
    return asking(pathOf(query, archived, null), setBusy, (page) => setFound({ ...page, query, problem: null }), (problem) => setFound({ ...NOTHING, query, problem }));
  }, [query, archived, round]);
  useEffect(() => {
    if (before === null) return;
    return asking(
      pathOf(query, archived, before),
      setBusy,
      (page) => setFound((known) => ({ ...known, ...page, sessions: joined(known.sessions, page.sessions) })),
      (problem) => {
        setFound((known) => ({ ...known, problem }));
        setBefore(null); // so that it can be asked for again
      },
    );
  }, [before]); // a page belongs to the query it was asked under; a new query forgets it
  const again = useCallback(() => setRound((count) => count + 1), []);
  const unready = query !== "" && found.query === query && !busy && (found.complete === false || found.problem?.status === 0);
  useEffect(() => {
    if (!unready) return;
    const timer = setTimeout(again, LOOK_AGAIN);
    return () => clearTimeout(timer);
  }, [unready, again]);
  const more = useCallback(() => setBefore(found.next), [found.next]);
  return { ...found, busy, more, again };
}

function pathOf(query: string, archived: boolean, before: number | null): string {
  const asked = new URLSearchParams({ query, archived: String(archived), limit: String(PAGE) });
  if (before !== null) asked.set("before", String(before));
  return `/api/v1/agent/sessions?${asked}`;
}

function asking(path: string, busy: (yes: boolean) => void, heard: (page: Page) => void, refused: (problem: Problem) => void): () => void {
  const stopped = new AbortController();
  busy(true);
  const unless = <T,>(act: (told: T) => void) => (told: T) => {
    if (stopped.signal.aborted) return;
    busy(false);
    act(told);
  };
  get<Page>(path, stopped.signal).then(
    unless(heard),
    unless((error: unknown) => refused(asProblem(error))),
  );
  return () => stopped.abort();
}

/** Pages one after the other; what is in both stays once. */
export function joined(known: SessionEntry[], more: SessionEntry[]): SessionEntry[] {
  const ids = new Set(known.map((one) => one.threadId));
  return [...known, ...more.filter((one) => !ids.has(one.threadId))];
}

/** Conversations older than those of the first page, read as somebody scrolls. */
export function useOlder(first: Page | null): { older: SessionEntry[]; next: number | null; busy: boolean; more: () => void; again: () => void } {
  const [older, setOlder] = useState<Page | null>(null);
  const [before, setBefore] = useState<number | null>(null);
  const [busy, setBusy] = useState(false);
  useEffect(() => {
    if (before === null) return;
    return asking(
      `/api/v1/agent/sessions?limit=${PAGE * 2}&before=${before}`,
      setBusy,
      (page) => setOlder((known) => ({ ...page, sessions: joined(known?.sessions ?? [], page.sessions) })),
      () => setBefore(null),
    );
  }, [before]);
  const next = older ? older.next : (first?.next ?? null);
  return { older: older?.sessions ?? [], next, busy, more: () => setBefore(next), again: () => (setOlder(null), setBefore(null)) };
}
