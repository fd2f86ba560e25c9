/**
 * What a person typed, chose or unfolded and has not sent: it outlives the part of the page that shows it, which may be
 * drawn anew, or leave the window and come back. In this tab's memory only; a reload of the page begins anew.
 */
import { createContext, useCallback, useContext, useSyncExternalStore, type ReactNode } from "react";

const MOST = 1_000;

/** Values by name, the ones changed longest ago forgotten first. */
export class Keeper {
  private values = new Map<string, unknown>();
  private listeners = new Set<() => void>();

  constructor(private most = MOST) {}

  get(name: string): unknown {
    return this.values.get(name);
  }

  set(name: string, value: unknown): void {
    this.values.delete(name);
    this.values.set(name, value);
    for (const oldest of this.values.keys()) {
      if (this.values.size <= this.most) break;
      this.values.delete(oldest);
    }
    this.listeners.forEach((listener) => listener());
  }

  clear(): void {
    this.values.clear();
    this.listeners.forEach((listener) => listener());
  }

  subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };
}

const keeper = new Keeper();
const Place = createContext("");

/** Somebody else sits here now. */
export function forgetKept(): void {
  keeper.clear();
}

/** Names inside are names within this one: a conversation, a turn of it, a part of that. */
export function Within({ name, children }: { name: string; children: ReactNode }) {
  const outer = useContext(Place);
  return <Place.Provider value={`${outer}/${name}`}>{children}</Place.Provider>;
}

/** Like `useState`, under a name that tells what it is about, for as long as the tab lives. */
export function useKept<T>(name: string, first: T): [T, (change: T | ((before: T) => T)) => void] {
  const path = `${useContext(Place)}/${name}`;
  const stored = useSyncExternalStore(keeper.subscribe, () => keeper.get(path)) as T | undefined;
  const value = stored === undefined ? first : stored;
  const set = useCallback(
    (change: T | ((before: T) => T)) => {
      const before = keeper.get(path) as T | undefined;
      keeper.set(path, change instanceof Function ? change(before === undefined ? first : before) : change);
    },
    [path],
  );
  return [value, set];
}

/** Something to unfold, that stays as the person left it. */
export function Folded({ name, className, open = false, children }: { name: string; className?: string | undefined; open?: boolean; children: ReactNode }) {
  const [unfolded, setUnfolded] = useKept(name, open);
  return (
    <details className={className} open={unfolded} onToggle={(event) => event.currentTarget.open !== unfolded && setUnfolded(event.currentTarget.open)}>
      {children}
    </details>
  );
}
