/** An action of an operator's: what went wrong is said, and the list is asked again at once, whatever came of it. */
import { useState } from "react";
import { asProblem, sentence } from "../ui/data";
import { useWords } from "../words";

export interface Attempts {
  problem: string | null;
  /** What is under way: its name, to lock its button until the list has been told. */
  busy: string | null;
  attempt: (name: string, work: () => Promise<unknown>) => Promise<boolean>;
}

export function useAttempts(again: () => Promise<void>): Attempts {
  const { t } = useWords();
  const [problem, setProblem] = useState<string | null>(null);
  const [busy, setBusy] = useState<string | null>(null);
  const attempt = async (name: string, work: () => Promise<unknown>): Promise<boolean> => {
    setBusy(name);
    let done = true;
    try {
      await work();
      setProblem(null);
    } catch (error) {
      setProblem(sentence(asProblem(error), t));
      done = false;
    }
    await again();
    setBusy(null);
    return done;
  };
  return { problem, busy, attempt };
}
