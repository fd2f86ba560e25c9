/** The few signs the console uses, drawn here so that nothing is fetched. They are ornaments: names stand beside them. */
const PATHS = {
  plus: "M12 5v14M5 12h14",
  send: "M5 12 20 4l-5 16-3.5-6.5L5 12Z",
  stop: "M7 7h10v10H7z",
  menu: "M4 7h16M4 12h16M4 17h16",
  close: "M6 6l12 12M18 6 6 18",
  dots: "M5 12h.01M12 12h.01M19 12h.01",
  chat: "M4 5h16v11H9l-5 4V5Z",
  agents: "M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8Zm-8 8c1-4 4-5 8-5s7 1 8 5",
  gauge: "M4 18a9 9 0 1 1 16 0M12 14l4-5",
  search: "M11 18a7 7 0 1 1 0-14 7 7 0 0 1 0 14Zm5-2 4 4",
  copy: "M9 9h10v11H9zM5 15V4h10",
  again: "M20 11a8 8 0 1 0-2 6M20 4v7h-7",
  edit: "M4 20h4L19 9l-4-4L4 16v4Z",
  up: "M7 11v9H4v-9h3Zm0 0 4-8c2 0 3 1 3 3l-1 4h5c2 0 2.500 1.500 2 3l-1.500 5c-.3 1.200-1 2-2.500 2H7",
  down: "M17 13V4h3v9h-3Zm0 0-4 8c-2 0-3-1-3-3l1-4H6c-2 0-2.500-1.500-2-3l1.500-5c.3-1.200 1-2 2.500-2h9",
  path: "M6 4v10a4 4 0 0 0 4 4h8m-4-4 4 4-4 4M6 4 3 7m3-3 3 3",
  clip: "M20 11l-8.500 8.500a5 5 0 0 1-7-7L13 4a3.500 3.500 0 0 1 5 5l-8.500 8.500a2 2 0 0 1-3-3L14 7",
  tool: "M14 6a4 4 0 0 1 5-2l-3 3 1 1 3-3a4 4 0 0 1-5.500 5L7 17.500a2 2 0 1 1-2.500-2.500L12 8",
  check: "M5 13l4 4L19 7",
  warn: "M12 4 2.500 20h19L12 4Zm0 6v4m0 3h.01",
  gear: "M12 15a3 3 0 1 0 0-6 3 3 0 0 0 0 6Zm0-12v3m0 12v3m9-9h-3M6 12H3m15.400-6.400-2.100 2.100M7.700 16.300l-2.100 2.100m12.800 0-2.100-2.100M7.700 7.700 5.600 5.600",
  arrow: "M12 5v14m-6-6 6 6 6-6",
  back: "M19 12H5m6-6-6 6 6 6",
  calendar: "M5 6h14v14H5zM5 10.500h14M9 3.500V8M15 3.500V8",
  clock: "M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18Zm0-14v5l3.500 2",
  key: "M15 13a4 4 0 1 0-3.800-2.800L4 17.500V20h3v-2h2v-2h2l1.200-3.200A4 4 0 0 0 15 13Zm.500-4.500h.01",
  book: "M12 6c-2-1.500-5-2-8-2v14c3 0 6 .5 8 2 2-1.500 5-2 8-2V4c-3 0-6 .5-8 2Zm0 0v14",
  file: "M6 3h8l4 4v14H6zM14 3v4h4",
  download: "M12 4v11m-5-5 5 5 5-5M5 20h14",
  shield: "M12 3 5 6v6c0 5 4 8 7 9 3-1 7-4 7-9V6l-7-3Z",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name, size = 18 }: { name: IconName; size?: number }) {
  return (
    <svg width={size} height={size} viewBox="0 0 24 24" fill="none" stroke="currentColor" strokeWidth="1.800" strokeLinecap="round" strokeLinejoin="round" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  );
}
