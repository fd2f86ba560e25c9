/** Reading from the host inside a page: what came, what went wrong, and a way to ask again. */
import { useCallback, useEffect, useRef, useState } from "react";
import { get, Problem } from "../api/client";
import type { WordKey } from "../words/en";

export interface Loaded<T> {
  value: T | null;
  problem: Problem | null;
  loading: boolean;
  again: () => void;
}

/** `path` null asks nothing; `every` asks again in that rhythm while the page is looked at. */
export function useLoaded<T>(path: string | null, every = 0): Loaded<T> {
  const [state, setState] = useState<{ path: string | null; value: T | null; problem: Problem | null }>({ path, value: null, problem: null });
  const [round, setRound] = useState(0);
  const again = useCallback(() => setRound((count) => count + 1), []);
  const asking = useRef(false);
  useEffect(() => {
    if (path === null) return;
    const stopped = new AbortController();
    asking.current = true;
    get<T>(path, stopped.signal)
      .then((value) => setState({ path, value, problem: null }))
      .catch((error: unknown) => {
        if (!stopped.signal.aborted) setState((before) => ({ path, value: before.path === path ? before.value : null, problem: asProblem(error) }));
      })
      .finally(() => {
        if (!stopped.signal.aborted) asking.current = false;
      });
    return () => stopped.abort();
  }, [path, round]);
  // A host slower than the rhythm is not asked again before it has answered: each question would cut off the one before.
  useRhythm(path === null ? 0 : every, () => asking.current || again());
  const fresh = state.path === path;
  return { value: fresh ? state.value : null, problem: fresh ? state.problem : null, loading: path !== null && (!fresh || (!state.value && !state.problem)), again };
}

export function useRhythm(every: number, act: () => unknown): void {
  const latest = useRef(act);
  latest.current = act;
  useEffect(() => {
    if (!every) return;
    const timer = setInterval(() => {
      if (!document.hidden) latest.current();
    }, every);
    return () => clearInterval(timer);
  }, [every]);
}

export function asProblem(error: unknown): Problem {
  return error instanceof Problem ? error : new Problem(0, "unreachable", error instanceof Error ? error.message : "");
}

export function sentence(problem: Problem, t: (key: WordKey) => string): string {
  return problem.status === 0 ? t("app.unreachable") : problem.message;
}
