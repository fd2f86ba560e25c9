/** The language of the page: chosen by the person, else by the browser. Words, times and numbers come from here. */
import { createContext, useContext, useEffect, useMemo, useState, type ReactNode } from "react";
import { en, type WordKey, type Words } from "./en";
import { zh } from "./zh";

export type Language = "en" | "zh";
const TABLES: Record<Language, Words> = { en, zh };
const KEY = "paddock.language";

export interface Speaker {
  language: Language;
  choose: (language: Language) => void;
  t: (key: WordKey, filled?: Record<string, string | number>) => string;
  time: (value: string | number | null | undefined) => string;
  day: (value: string | number) => string;
  /** Hours and minutes. */
  clock: (value: string | number) => string;
  /** A day and an hour, short. */
  moment: (value: string | number) => string;
  took: (milliseconds: number) => string;
  number: (value: number) => string;
  /** Of so many bytes. */
  size: (bytes: number) => string;
  pick: (value: string | Record<string, string> | undefined | null) => string;
}

const Context = createContext<Speaker | null>(null);

function first(): Language {
  const chosen = localStorage.getItem(KEY);
  if (chosen === "en" || chosen === "zh") return chosen;
  return navigator.languages.some((name) => name.toLowerCase().startsWith("zh")) ? "zh" : "en";
}

export function speaker(language: Language, choose: (language: Language) => void = () => undefined): Speaker {
  const locale = language === "zh" ? "zh-CN" : "en";
  const hour = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" } as const;
  const date = { month: "short", day: "numeric" } as const;
  const times = new Intl.DateTimeFormat(locale, { ...date, ...hour, second: "2-digit" });
  const oldTimes = new Intl.DateTimeFormat(locale, { year: "numeric", ...date, ...hour });
  const clocks = new Intl.DateTimeFormat(locale, hour);
  const moments = new Intl.DateTimeFormat(locale, { ...date, ...hour });
  const days = new Intl.DateTimeFormat(locale, { weekday: "long", day: "numeric", month: "long", year: "numeric" });
  const numbers = new Intl.NumberFormat(locale, { maximumFractionDigits: 4 });
  return {
    language,
    choose,
    t: (key, filled = {}) => TABLES[language][key].replace(/\{(\w+)\}/g, (whole, name: string) => String(filled[name] ?? whole)),
    time: (value) => {
      if (value === null || value === undefined) return "";
      const at = new Date(value);
      return (at.getFullYear() === new Date().getFullYear() ? times : oldTimes).format(at);
    },
    clock: (value) => clocks.format(new Date(value)),
    moment: (value) => moments.format(new Date(value)),
    day: (value) => days.format(new Date(value)),
    took: (ms) => (ms < 1000 ? `${Math.round(ms)} ms` : ms < 60_000 ? `${(ms / 1000).toFixed(1)} s` : `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`),
    number: (value) => numbers.format(value),
    size: (bytes) => sized(bytes, locale),
    pick: (value) => picked(value, language),
  };
}

const UNITS = ["byte", "kilobyte", "megabyte", "gigabyte"];

function sized(bytes: number, locale: string): string {
  const power = Math.max(0, Math.min(UNITS.length - 1, Math.floor(Math.log10(Math.max(1, bytes)) / 3)));
  const format = new Intl.NumberFormat(locale, { style: "unit", unit: UNITS[power] as string, unitDisplay: power ? "short" : "long", maximumFractionDigits: power > 1 ? 1 : 0 });
  return format.format(bytes / 1000 ** power);
}

/** A label in this language: runners may give several. */
function picked(value: string | Record<string, string> | undefined | null, language: Language): string {
  if (!value) return "";
  if (typeof value === "string") return value;
  const wanted = language === "zh" ? ["zh_Hans", "zh-Hans", "zh_CN", "zh-CN", "zh"] : ["en_US", "en-US", "en"];
  const found = wanted.map((name) => value[name]).find((text) => text);
  return found ?? Object.values(value)[0] ?? "";
}

export function Speaking({ children }: { children: ReactNode }) {
  const [language, setLanguage] = useState(first);
  const spoken = useMemo(
    () =>
      speaker(language, (chosen) => {
        localStorage.setItem(KEY, chosen);
        setLanguage(chosen);
      }),
    [language],
  );
  useEffect(() => {
    document.documentElement.lang = language === "zh" ? "zh-Hans" : "en";
  }, [language]);
  return <Context.Provider value={spoken}>{children}</Context.Provider>;
}

export function useWords(): Speaker {
  const found = useContext(Context);
  if (!found) throw new Error("no language around this part of the page");
  return found;
}
