/** A run watched while it goes: its own stream says when there is something new, and the story is read again then. */
import { useEffect, useRef, useState } from "react";
import { stream } from "../api/client";

/** Between two readings of a story: words come far more often than anybody reads a time line. */
const REST_MS = 300;
const RETRY_MS = 3_000;

/** Calls `again` after what the run says, never twice at once, and at its end. True while the stream is there. */
export function useNews(run: string, going: boolean, again: () => Promise<void>): boolean {
  const [following, setFollowing] = useState(false);
  const latest = useRef(again);
  latest.current = again;
  useEffect(() => {
    if (!going) return;
    const stopped = new AbortController();
    const reader = oneAtATime(() => latest.current(), stopped.signal);
    void follow(run, stopped.signal, setFollowing, reader);
    return () => {
      stopped.abort();
      setFollowing(false);
    };
  }, [run, going]);
  return following;
}

async function follow(run: string, signal: AbortSignal, open: (is: boolean) => void, news: () => void): Promise<void> {
  for (let cursor: string | null = null; !signal.aborted; ) {
    try {
      for await (const frames of stream(`/api/v1/agent/runs/${run}/events`, cursor, signal, () => open(true))) {
        cursor = frames.findLast((frame) => frame.id !== null)?.id ?? cursor;
        news();
      }
      return news(); // it ended with the run
    } catch {
      if (signal.aborted) return;
      open(false);
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  }
}

/** However often it is asked for, one at a time, with a rest between; the last asking is always answered. */
export function oneAtATime(work: () => Promise<void>, signal: AbortSignal, rest = REST_MS): () => void {
  let wanted = false;
  let busy = false;
  const pump = async () => {
    busy = true;
    while (wanted && !signal.aborted) {
      wanted = false;
      await work();
      await new Promise((resolve) => setTimeout(resolve, rest));
    }
    busy = false;
  };
  return () => {
    wanted = true;
    if (!busy) void pump();
  };
}
