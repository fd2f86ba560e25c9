/**
 * A long conversation in a small window: only what is in sight is drawn, and a little around it. Keeps the newest words
 * in sight while the person is at the end, and their place when they are not, whatever grows above or comes before it.
 * Nothing moves under a finger or a pressed button: a press and its release are on the same thing, or it is no click.
 */
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState, type MouseEvent, type ReactNode } from "react";
import type { Run } from "../model/run";
import { drawnIn, entryAt, placesOf } from "../model/window";
import { Icon } from "../ui/icons";
import { useWords } from "../words";

const GUESS = 170;
const AROUND = 900;
const NEAR_TOP = 600;
const AT_END = 80;
const LONGEST_PRESS_MS = 10_000;

interface Props {
  turns: readonly Run[];
  draw: (index: number) => ReactNode;
  hasMore: boolean;
  onEarlier: () => Promise<void>;
  /** A turn to be brought in sight, and how far into it; it stays there until the person moves. */
  goal: Goal | null;
  onMoved: () => void;
  /** Another number whenever the person said something: they want to see what comes of it. */
  said: number;
  /** What stands before and after the turns. */
  head: ReactNode;
  children: ReactNode;
}
export interface Goal {
  turnId: string;
  within: (place: HTMLElement) => number;
}
interface View {
  top: number;
  height: number;
}
interface Anchor {
  key: string;
  within: number;
}

export function Scroller({ turns, draw, hasMore, onEarlier, goal, onMoved, said, head, children }: Props) {
  const { t } = useWords();
  const box = useRef<HTMLDivElement>(null);
  const list = useRef<HTMLDivElement>(null);
  const heights = useRef(new Map<string, number>());
  const anchor = useRef<Anchor | null>(null);
  const end = useRef(true);
  const left = useRef(0);
  const held = useRef(false);
  const pinned = useRef<Goal | null>(null);
  const [atEnd, setAtEnd] = useState(true);
  const [loading, setLoading] = useState(false);
  const [measured, setMeasured] = useState(0);
  const [view, setView] = useState<View>({ top: Number.MAX_SAFE_INTEGER, height: 1_000 });
  const [kept, setKept] = useState<string | null>(null);

  const places = useMemo(() => placesOf(turns.length, (index) => heights.current.get(turns[index]?.turnId ?? "") ?? GUESS), [turns, measured]);
  const total = places[turns.length] ?? 0;
  const top = Math.min(view.top, Math.max(0, total - view.height));
  const keptAt = kept === null ? null : turns.findIndex((turn) => turn.turnId === kept);
  const { runs, after } = drawnIn(places, top, top + view.height, AROUND, keptAt);

  /** What is drawn tells its height; true when one of them is new. */
  const measure = useCallback((): boolean => {
    let changed = false;
    for (const element of list.current?.querySelectorAll<HTMLElement>(":scope > [data-place]") ?? []) {
      const key = element.dataset["place"] ?? "";
      const height = element.getBoundingClientRect().height;
      if (Math.abs((heights.current.get(key) ?? -1) - height) > 0.5) {
        heights.current.set(key, height);
        changed = true;
      }
    }
    return changed;
  }, []);

  const look = useCallback(() => {
    const element = box.current;
    const inner = list.current;
    if (!element || !inner) return;
    const seen = element.scrollTop - inner.offsetTop;
    setView((before) => (before.top === seen && before.height === element.clientHeight ? before : { top: seen, height: element.clientHeight }));
    left.current = element.scrollTop;
    if (pinned.current) return;
    if (!held.current) end.current = isAtEnd(element);
    setAtEnd(end.current);
    const first = entryAt(places, seen);
    const key = turns[first]?.turnId;
    anchor.current = key === undefined ? null : { key, within: seen - (places[first] ?? 0) };
  }, [places, turns]);

  /** What was sought is in sight, and the person goes on from there by themselves. */
  const moved = useCallback(() => {
    if (!pinned.current) return;
    pinned.current = null;
    look();
    onMoved();
  }, [look, onMoved]);
  useLayoutEffect(() => {
    pinned.current = goal;
    if (!goal) return;
    end.current = false;
    setAtEnd(false);
    setMeasured((count) => count + 1);
  }, [goal]);

  const toEnd = useCallback(() => {
    moved();
    end.current = true;
    setAtEnd(true);
    setMeasured((count) => count + 1);
  }, [moved]);
  const heard = useRef(said);
  useLayoutEffect(() => {
    if (heard.current !== said) toEnd();
    heard.current = said;
  }, [said, toEnd]);

  /** The person presses something: what they look at stays where it is until they let go. */
  const hold = useCallback(() => {
    look();
    held.current = true;
    const stopped = new AbortController();
    const letGo = () => {
      stopped.abort();
      clearTimeout(longest);
      // the click comes after the release, and belongs to it
      setTimeout(() => {
        held.current = false;
        setMeasured((count) => count + 1);
      });
    };
    const longest = setTimeout(letGo, LONGEST_PRESS_MS);
    for (const end of ["pointerup", "pointercancel", "blur"]) window.addEventListener(end, letGo, { signal: stopped.signal });
  }, [look]);

  /** Something is unfolded: what comes out of it is to be seen from its beginning, not from its end. */
  const unfold = useCallback(
    (event: MouseEvent) => {
      if (!(event.target as Element).closest("summary")?.matches("details:not([open]) > summary")) return;
      look();
      end.current = false;
    },
    [look],
  );

  // After each drawing, before it is seen: heights are taken, and what the person looks at is put where it was.
  useLayoutEffect(() => {
    const element = box.current;
    const inner = list.current;
    if (!element || !inner) return;
    if (measure()) setMeasured((count) => count + 1);
    const lowest = element.scrollHeight - element.clientHeight;
    const follows = () => end.current && !held.current;
    if (follows() && element.scrollTop < Math.min(left.current, lowest) - 2) look(); // the person was quicker than the event
    if (follows()) element.scrollTop = element.scrollHeight;
    else if (pinned.current) anchor.current = anchorOf(pinned.current, inner);
    if (!follows() && anchor.current) {
      const { key } = anchor.current;
      const went = element.scrollTop - Math.min(left.current, lowest); // and is not put back for having been quicker than the event
      const within = anchor.current.within + (pinned.current || Math.abs(went) <= 2 ? 0 : went);
      anchor.current = { key, within };
      const at = turns.findIndex((turn) => turn.turnId === key);
      if (at >= 0) {
        const current = placesOf(at, (index) => heights.current.get(turns[index]?.turnId ?? "") ?? GUESS);
        const wanted = inner.offsetTop + (current[at] ?? 0) + within;
        if (Math.abs(element.scrollTop - wanted) > 1) element.scrollTop = wanted;
      }
    }
    left.current = element.scrollTop;
    const seen = element.scrollTop - inner.offsetTop;
    setView((before) => (Math.abs(before.top - seen) < 1 && before.height === element.clientHeight ? before : { top: seen, height: element.clientHeight }));
  });

  // What grows without being drawn anew (an image came, something was unfolded, the window changed).
  useEffect(() => {
    const watched = [box.current, box.current?.firstElementChild].filter((one): one is Element => Boolean(one));
    const watcher = new ResizeObserver(() => {
      if (measure()) setMeasured((count) => count + 1);
      const element = box.current;
      if (!element) return;
      if (end.current && !held.current) left.current = element.scrollTop = element.scrollHeight - element.clientHeight;
      else if (!pinned.current) setAtEnd(isAtEnd(element));
    });
    watched.forEach((one) => watcher.observe(one));
    return () => watcher.disconnect();
  }, [measure]);

  const earlier = useCallback(() => {
    if (loading || !hasMore) return;
    setLoading(true);
    void onEarlier().finally(() => setLoading(false));
  }, [loading, hasMore, onEarlier]);
  useEffect(() => {
    if (hasMore && !atEnd && view.top < NEAR_TOP) earlier();
  }, [hasMore, atEnd, view.top, earlier]);

  return (
    <div className="scroll-area">
      <div className="scroller" ref={box} onScroll={look} onWheel={moved} onTouchMove={moved} onKeyDown={moved} onPointerDown={() => (moved(), hold())} tabIndex={0}>
        <div className="column" onClickCapture={unfold} onFocus={(event) => setKept((event.target as HTMLElement).closest<HTMLElement>("[data-place]")?.dataset["place"] ?? null)} onBlur={() => setKept(null)}>
          {hasMore && (
            <button type="button" className="button quiet center" disabled={loading} onClick={earlier}>
              {t(loading ? "app.loading" : "chat.earlier")}
            </button>
          )}
          {head}
          <div ref={list} className="turns" role={turns.length ? "feed" : undefined} aria-label={turns.length ? t("chat.messages") : undefined}>
            {runs.flatMap((run) => [
              <div key={`before ${run.to - run.from === 1 && run.from === keptAt ? "kept" : "seen"}`} className="gap" style={{ height: run.before }} />,
              ...turns.slice(run.from, run.to).map((turn, index) => (
                <div key={turn.turnId} data-place={turn.turnId} className="place">
                  {draw(run.from + index)}
                </div>
              )),
            ])}
            {after > 0 && <div key="after" className="gap" style={{ height: after }} />}
          </div>
          {children}
        </div>
      </div>
      {!atEnd && (
        <button
          type="button"
          className="round to-end"
          onClick={toEnd}
          aria-label={t("chat.to_bottom")}
          title={t("chat.to_bottom")}
        >
          <Icon name="arrow" />
        </button>
      )}
    </div>
  );
}

function isAtEnd({ scrollHeight, scrollTop, clientHeight }: HTMLElement): boolean {
  return scrollHeight - scrollTop - clientHeight < AT_END;
}

function anchorOf(goal: Goal, list: HTMLElement): Anchor {
  const place = list.querySelector<HTMLElement>(`:scope > [data-place="${CSS.escape(goal.turnId)}"]`);
  return { key: goal.turnId, within: place ? goal.within(place) : 0 };
}
