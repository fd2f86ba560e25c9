/** Reading from the host inside a page: what came, what went wrong, and a way to ask again. */
import { useCallback, useEffect, useRef, useState } from "react";
import { get, Problem } from "../api/client";
import type { Speaker } from "../words";
import { refusalInWords } from "../words/said";

export interface Loaded<T> {
  value: T | null;
  problem: Problem | null;
  loading: boolean;
  /** Ask now; done when the answer is on the page, or when it is not going to come. */
  again: () => Promise<void>;
}

/** `path` null asks nothing; `every` asks again in that rhythm while the page is looked at, and when it is again. */
export function useLoaded<T>(path: string | null, every = 0): Loaded<T> {
  const [state, setState] = useState<{ path: string | null; value: T | null; problem: Problem | null }>({ path, value: null, problem: null });
  const [round, setRound] = useState(0);
  const asking = useRef(false);
  const waiting = useRef<(() => void)[]>([]);
  const again = useCallback(() => {
    setRound((count) => count + 1);
    return new Promise<void>((resolve) => waiting.current.push(resolve));
  }, []);
  useEffect(() => {
    if (path === null) return;
    const stopped = new AbortController();
    const heard = waiting.current.splice(0); // these wait for this question's answer, not for an older one's
    asking.current = true;
    get<T>(path, stopped.signal)
      .then((value) => setState({ path, value, problem: null }))
      .catch((error: unknown) => {
        if (!stopped.signal.aborted) setState((before) => ({ path, value: before.path === path ? before.value : null, problem: asProblem(error) }));
      })
      .finally(() => {
        if (stopped.signal.aborted) return;
        asking.current = false;
        heard.forEach((resolve) => resolve());
      });
    return () => {
      stopped.abort();
      waiting.current.unshift(...heard); // the next question answers them
    };
  }, [path, round]);
  useEffect(() => () => waiting.current.splice(0).forEach((resolve) => resolve()), []);
  // A host slower than the rhythm is not asked again before it has answered: each question would cut off the one before.
  useRhythm(path === null ? 0 : every, () => asking.current || again());
  useEffect(() => {
    if (!every || path === null) return;
    const seen = () => document.hidden || asking.current || void again();
    document.addEventListener("visibilitychange", seen);
    return () => document.removeEventListener("visibilitychange", seen);
  }, [every, path, again]);
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

export function sentence(problem: Problem, t: Speaker["t"]): string {
  return refusalInWords(problem, t);
}
