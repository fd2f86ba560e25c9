/**
 * Keeps one conversation up to date: a picture of now, then the session's stream from there, for as long as the page
 * wants it. Lost connections are taken up at the last frame. Knows the host and the model, and nothing of pages.
 */
import { get, Problem, stream } from "../api/client";
import type { HistoryDay, RunEntry, SessionLook } from "../api/shapes";
import { asRecord, readEvent, type AgUiEvent } from "../model/events";
import { emptyThread, oldestDay, opened, reduceThread, refreshed, withEarlier, withKnown, withWhole, type SessionFrame, type Thread } from "../model/thread";

export type Connection = "new" | "loading" | "live" | "lost" | "gone" | "deleted";
export interface Followed {
  thread: Thread;
  connection: Connection;
  problem: string | null;
}

/** The last word of a stream whose conversation is no more. */
const DELETED = "paddock.session.session_deleted";
const HIDDEN_MS = 20_000;
const FLUSH_MS = 25;
const GLANCE_MS = 120;
const RETRY_MS = [300, 1_000, 2_000, 4_000, 8_000];

/** Conversations that were on the page lately, as they were: whoever comes back sees them at once, and while the host is away. */
const seen = new Map<string, Thread>();
const SEEN = 8;

function remember(thread: Thread): void {
  seen.delete(thread.id);
  if (thread.turns.length) seen.set(thread.id, thread);
  for (const oldest of seen.keys()) if (seen.size > SEEN) seen.delete(oldest);
}

/** Somebody else sits here now. */
export function forgetSeen(): void {
  seen.clear();
}

export const sessionPath = (id: string): string => `/api/v1/agent/sessions/${id}`;

export class ThreadFollower {
  private state: Followed;
  private listeners = new Set<() => void>();
  private stopping = new AbortController();
  private wake: (() => void) | null = null;
  private hiddenTimer: ReturnType<typeof setTimeout> | undefined;
  private connectionAbort: AbortController | null = null;
  private running = false;

  constructor(readonly id: string) {
    this.state = { thread: seen.get(id) ?? emptyThread(id), connection: "new", problem: null };
  }

  snapshot = (): Followed => this.state;

  subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  private set(change: Partial<Followed>): void {
    this.state = { ...this.state, ...change };
    this.listeners.forEach((listener) => listener());
  }

  /** Follow until `stop`. A conversation that does not exist yet is left alone until `begin` is called again. */
  begin(): void {
    if (this.running) return;
    this.running = true;
    if (this.stopping.signal.aborted) this.stopping = new AbortController();
    document.addEventListener("visibilitychange", this.onVisibility);
    window.addEventListener("online", this.onOnline);
    window.addEventListener("offline", this.onOffline);
    void this.run(this.stopping.signal);
  }

  stop(): void {
    this.stopping.abort();
    this.connectionAbort?.abort();
    this.running = false;
    remember(this.state.thread);
    clearTimeout(this.hiddenTimer);
    document.removeEventListener("visibilitychange", this.onVisibility);
    window.removeEventListener("online", this.onOnline);
    window.removeEventListener("offline", this.onOffline);
  }

  /** Read history again: after an edit, or when an input came that the stream does not tell. The stream goes on. */
  reload(): void {
    this.asked += 1;
    if (!this.refreshing) void this.refresh(this.stopping.signal);
  }
  private asked = 0;
  private refreshing = false;

  private async refresh(signal: AbortSignal): Promise<void> {
    this.refreshing = true;
    let failures = 0;
    for (let done = 0; done !== this.asked && !signal.aborted; ) {
      const asked = this.asked;
      try {
        const look = await get<SessionLook>(sessionPath(this.id), signal);
        const days = await this.daysOnPage(signal);
        this.set({ thread: refreshed(this.state.thread, look, days) });
        done = asked;
      } catch (error) {
        if (error instanceof Problem && error.status !== 0 && error.status < 500) break; // the stream is told the same
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS[failures] ?? 8_000));
        failures += 1;
      }
    }
    this.refreshing = false;
  }

  /** History from the newest day down to the oldest that is on the page, the oldest first. */
  private async daysOnPage(signal: AbortSignal): Promise<HistoryDay[]> {
    const oldest = oldestDay(this.state.thread);
    const days = [await historyDay(this.id, null, signal)];
    for (let top = days[0]; top?.hasMore && top.day !== null && top.day > oldest; top = days[0]) days.unshift(await historyDay(this.id, top.day, signal));
    return days;
  }

  private async run(signal: AbortSignal): Promise<void> {
    let failures = 0;
    let cursor: string | null = null;
    while (!signal.aborted) {
      try {
        cursor ??= await this.picture(signal);
        const opened = () => {
          failures = 0;
          this.set({ connection: "live", problem: null });
        };
        for await (const frames of this.frames(cursor, signal, opened)) {
          cursor = frames.cursor;
          if (frames.items.some(({ event }) => event.type === "CUSTOM" && event.name === DELETED)) {
            this.set({ thread: emptyThread(this.id) });
            return this.ended("deleted", "");
          }
          this.apply(frames.items);
        }
      } catch (error) {
        if (signal.aborted) return;
        if (error instanceof Problem) {
          if (error.status === 404) {
            this.set({ thread: emptyThread(this.id) });
            return this.ended("gone", error.message);
          }
          if (error.status === 401) return this.ended("lost", error.message);
          if (error.status === 410) cursor = null;
        }
        failures += 1;
        if (failures > 1 || cursor === null) this.set({ connection: cursor === null && failures === 1 ? "loading" : "lost" });
      }
      await this.pause(RETRY_MS[Math.max(0, Math.min(failures, RETRY_MS.length) - 1)] ?? 8_000);
      while (document.hidden && !signal.aborted && this.connectionAbort?.signal.aborted) await this.pause(60_000);
    }
  }

  private ended(connection: Connection, problem: string): void {
    this.running = false;
    this.set({ connection, problem });
  }

  private async picture(signal: AbortSignal): Promise<string> {
    if (this.state.connection === "new") this.set({ connection: "loading" });
    const look = await get<SessionLook>(sessionPath(this.id), signal);
    const [day, runs] = await Promise.all([historyDay(this.id, null, signal), runsOf(this.id, signal)]);
    this.waiting = [];
    this.set({ thread: withKnown(opened(look, day, runs), this.state.thread) });
    return look.inflightCursor ?? look.cursor;
  }

  private async *frames(cursor: string, signal: AbortSignal, opened: () => void): AsyncGenerator<{ cursor: string; items: SessionFrame[] }> {
    const connection = (this.connectionAbort = new AbortController());
    const stop = () => connection.abort();
    signal.addEventListener("abort", stop);
    try {
      for await (const frames of stream(`${sessionPath(this.id)}/events?format=ag-ui`, cursor, connection.signal, opened)) {
        yield { cursor: frames.findLast((frame) => frame.id !== null)?.id ?? cursor, items: frames.flatMap(asSessionFrame) };
      }
    } catch (error) {
      if (!connection.signal.aborted || signal.aborted) throw error; // aborted by us: go on from the cursor
    } finally {
      signal.removeEventListener("abort", stop);
    }
  }

  /** Frames are taken in a few at a time: a page need not be drawn more often than it can be read. */
  private apply(frames: SessionFrame[]): void {
    this.waiting.push(...frames);
    if (this.flushing === null) this.flushing = setTimeout(this.flush, FLUSH_MS);
  }
  private waiting: SessionFrame[] = [];
  private flushing: ReturnType<typeof setTimeout> | null = null;

  private flush = (): void => {
    this.flushing = null;
    if (this.waiting.length && !this.stopping.signal.aborted) this.take(this.waiting.splice(0));
  };

  private take(frames: SessionFrame[]): void {
    const thread = frames.reduce(reduceThread, this.state.thread);
    if (thread !== this.state.thread) this.set({ thread, connection: "live", problem: null });
    // Some inputs are told by history only, and one that replaces an earlier one has changed the course.
    const unknown = frames.some(
      ({ seq, event }) => event.type === "RUN_STARTED" && ((!event.input && !event.parentRunId) || "replaces" in asRecord(event.metadata)) && seq > thread.head,
    );
    if (unknown) this.reload();
  }

  /** One more day, upwards. Asked for twice at once it is read once. */
  earlier(): Promise<void> {
    this.goingUp ??= this.oneDayUp().finally(() => void (this.goingUp = null));
    return this.goingUp;
  }
  private goingUp: Promise<void> | null = null;

  private async oneDayUp(): Promise<void> {
    const { thread } = this.state;
    if (!thread.hasMore || thread.day === null) return;
    const [day, runs] = await Promise.all([historyDay(this.id, thread.day), runsOf(this.id, undefined, thread.turns[0]?.turnId)]);
    this.set({ thread: withEarlier(this.state.thread, day, runs) });
  }

  /** Day by day up to this turn; false when the conversation does not have it. */
  async upTo(turnId: string, signal: AbortSignal): Promise<boolean> {
    const here = () => this.state.thread.turns.some((turn) => turn.turnId === turnId);
    for (let failures = 0; !here() && this.state.thread.hasMore && !signal.aborted; ) {
      try {
        await this.earlier();
        failures = 0;
      } catch (error) {
        if (!(error instanceof Problem) || (error.status !== 0 && error.status < 500)) throw error;
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS[failures] ?? 8_000)); // until the person goes elsewhere
        failures += 1;
      }
    }
    return here();
  }

  /**
   * A turn that history tells in part came in sight, or left it. What is in sight longer than a glance is learned whole:
   * tools, steps, cards. One after the other, the latest first; what was scrolled past is not asked for.
   */
  sight(turnId: string, here: boolean): void {
    if (!here) this.sighted.delete(turnId);
    else {
      this.sighted.add(turnId);
      if (!this.learning) void this.learnSighted();
    }
  }
  private sighted = new Set<string>();
  private learning = false;

  private async learnSighted(): Promise<void> {
    this.learning = true;
    await new Promise((resolve) => setTimeout(resolve, GLANCE_MS));
    for (let next = [...this.sighted].at(-1); next !== undefined; next = [...this.sighted].at(-1)) {
      this.sighted.delete(next);
      if (!this.stopping.signal.aborted) await this.learn(next);
    }
    this.learning = false;
  }

  private async learn(turnId: string): Promise<void> {
    const events: AgUiEvent[] = [];
    try {
      for await (const frames of stream(`/api/v1/agent/runs/${turnId}/events`, null, this.stopping.signal)) {
        for (const frame of frames) {
          const event = readEvent(frame.data);
          if (event) events.push(event);
        }
      }
    } catch {
      return; // it is told as history has it, and asked for again when it is seen again
    }
    this.set({ thread: withWhole(this.state.thread, turnId, events) });
  }

  private pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  /** A hidden tab gives its connection back after a while: browsers allow only a few to one host. */
  private onVisibility = (): void => {
    clearTimeout(this.hiddenTimer);
    if (document.hidden) this.hiddenTimer = setTimeout(() => this.connectionAbort?.abort(), HIDDEN_MS);
    else this.wake?.();
  };

  private onOnline = (): void => this.wake?.();

  /** The machine lost its network, which a host on the same machine does not mind: see whether it still answers. */
  private onOffline = (): void => this.connectionAbort?.abort();
}

function asSessionFrame({ id, data }: { id: string | null; data: string }): SessionFrame[] {
  const event = readEvent(data);
  return event ? [{ seq: Number(id?.split(".")[1] ?? 0), event }] : [];
}

export function historyDay(id: string, before: string | null, signal?: AbortSignal): Promise<HistoryDay> {
  const day = before === null ? "" : `&before=${before}`;
  return get<HistoryDay>(`/api/v1/agent/history?threadId=${id}${day}`, signal);
}

/** The latest runs of a conversation, or the latest before this one. */
async function runsOf(id: string, signal?: AbortSignal, run?: string): Promise<RunEntry[]> {
  const before = run ? `&before=${encodeURIComponent(run)}` : "";
  return (await get<{ runs: RunEntry[] }>(`/api/v1/agent/runs?threadId=${id}&limit=200${before}`, signal)).runs;
}
