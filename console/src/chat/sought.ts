/**
 * A message that was looked for: read upwards until it is here, brought in sight, its words marked where they stand. The
 * marks are drawn over the text by the browser, so what the agent said stays as it is; where a browser cannot, the
 * message alone is marked.
 */
import { useEffect, useLayoutEffect, useMemo, useState } from "react";
import { placesIn } from "../model/places";
import type { Sought } from "../ui/router";
import type { ThreadFollower } from "./follow";
import type { Goal } from "./Scroller";

export type Search = "none" | "looking" | "here" | "missing";
const NAME = "sought";
/** Of the window, above the words. */
const ABOVE = 0.3;

export const turnOfItem = (item: string): string => item.slice(0, Math.max(0, item.lastIndexOf(".")));

/** `ready` when the conversation is there as far as its newest day. */
export function useSought(sought: Sought | null, follower: ThreadFollower, ready: boolean): { search: Search; goal: Goal | null; turnId: string | null } {
  const key = sought ? JSON.stringify(sought) : "";
  const [kept, setKept] = useState(key); // the address forgets it when the person moves on, the mark stays
  useEffect(() => {
    if (key) setKept(key);
  }, [key]);
  const wanted = useMemo(() => (kept ? (JSON.parse(kept) as Sought) : null), [kept]);
  const turnId = wanted && turnOfItem(wanted.item);
  const [search, setSearch] = useState<Search>("none");
  useEffect(() => {
    if (!turnId || !ready) return;
    const stopped = new AbortController();
    setSearch("looking");
    follower.upTo(turnId, stopped.signal).then(
      (here) => stopped.signal.aborted || setSearch(here ? "here" : "missing"),
      () => stopped.signal.aborted || setSearch("missing"),
    );
    return () => stopped.abort();
  }, [turnId, ready, follower]);
  const goal = useMemo<Goal | null>(() => (key && wanted && turnId && search === "here" ? { turnId, within: (place) => withinOf(place, wanted) } : null), [key !== "", wanted, turnId, search]);
  useMarks(search === "here" ? wanted : null, turnId);
  return { search, goal, turnId };
}

/** Where in its turn the message is: its question, or what was answered. */
function partsOf(place: HTMLElement, item: string): HTMLElement[] {
  const asked = item.endsWith(".0");
  return [...place.querySelectorAll<HTMLElement>(asked ? ".asked .bubble" : ".answer > .markdown")];
}

function rangesIn(place: HTMLElement, { item, words }: Sought): Range[] {
  return partsOf(place, item).flatMap((part) => textRanges(part, words));
}

/** How far into the turn the window begins: with it, unless the words would be out of sight. */
function withinOf(place: HTMLElement, sought: Sought): number {
  const top = place.getBoundingClientRect().top;
  const first = rangesIn(place, sought)[0];
  const height = place.closest(".scroller")?.clientHeight ?? 0;
  const below = first ? first.getBoundingClientRect().top - top : 0;
  return below < height * (1 - ABOVE) ? -8 : below - height * ABOVE;
}

/** Marks follow what is drawn: a turn leaves the window and comes back, and learns more of itself. */
function useMarks(sought: Sought | null, turnId: string | null): void {
  useLayoutEffect(() => {
    if (!sought || !turnId || !("highlights" in CSS)) return;
    const list = document.querySelector(".turns");
    if (!list) return;
    const mark = () => {
      const place = list.querySelector<HTMLElement>(`:scope > [data-place="${CSS.escape(turnId)}"]`);
      CSS.highlights.set(NAME, new Highlight(...(place ? rangesIn(place, sought) : [])));
    };
    mark();
    const watcher = new MutationObserver(mark);
    watcher.observe(list, { childList: true, subtree: true });
    return () => {
      watcher.disconnect();
      CSS.highlights.delete(NAME);
    };
  }, [sought, turnId]);
}

/** Where words stand in a piece of the page, across its elements. */
function textRanges(part: HTMLElement, words: readonly string[]): Range[] {
  const walker = document.createTreeWalker(part, NodeFilter.SHOW_TEXT);
  const nodes: [Text, number][] = [];
  let text = "";
  while (walker.nextNode()) {
    nodes.push([walker.currentNode as Text, text.length]);
    text += (walker.currentNode as Text).data;
  }
  return placesIn(text, words).map(([from, to]) => {
    const range = document.createRange();
    const [first, begin] = nodes.findLast(([, start]) => start <= from) ?? [part, 0];
    const [last, end] = nodes.findLast(([, start]) => start < to) ?? [part, 0];
    range.setStart(first, from - begin);
    range.setEnd(last, to - end);
    return range;
  });
}
