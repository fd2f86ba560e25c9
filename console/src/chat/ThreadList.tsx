/** The person's conversations: found by title and by what was said, named, put away, exported, deleted. */
import { useEffect, useRef, useState, type FormEvent, type KeyboardEvent } from "react";
import { download, patch, Problem, remove } from "../api/client";
import type { Piece, SessionEntry } from "../api/shapes";
import { asProblem, sentence, useLoaded } from "../ui/data";
import { Icon } from "../ui/icons";
import { Confirm, Dialog, Menu } from "../ui/parts";
import { go, toMessage, toThread } from "../ui/router";
import { useWords } from "../words";
import { joined, MOST_LETTERS, useFound, useOlder, useSettled, type Found, type Page } from "./finding";
import { sessionPath } from "./follow";
import { useWorld } from "./world";

type Asked = { kind: "rename" | "delete"; entry: SessionEntry } | null;

export function ThreadList({ current, onChosen }: { current: string | null; onChosen: () => void }) {
  const { t } = useWords();
  const { threads } = useWorld();
  const [search, setSearch] = useState("");
  const [archived, setArchived] = useState(false);
  const [asked, setAsked] = useState<Asked>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const query = useSettled(search.trimStart());
  const looking = query.trim() !== "";
  const found = useFound(looking ? query : "", archived);
  const older = useOlder(threads.value);
  // Where there are more conversations than are read, some of the others may be archived.
  const further = useLoaded<Page>(threads.value?.next != null ? "/api/v1/agent/sessions?archived=true&limit=1" : null);
  const all = joined(threads.value?.sessions ?? [], older.older);
  const answered = looking && found.query !== null; // until then what is there stays: nothing goes away under a finger
  const shown = answered ? found.sessions : all.filter((one) => one.archived === archived);

  const attempt = (work: Promise<unknown>) => {
    const told = () => {
      older.again();
      if (looking) found.again();
      return threads.again();
    };
    work.then(() => setProblem(null)).catch((error: unknown) => setProblem(sentence(asProblem(error), t))).finally(told);
  };
  /** Away from the page first when it is gone, and only then: a conversation in which somebody speaks stays. */
  const erase = async (id: string) => {
    try {
      await remove(sessionPath(id));
    } catch (error) {
      throw error instanceof Problem && error.status === 409 ? new Problem(409, error.code, t("threads.delete_busy")) : error;
    }
    if (id === current) go("#/");
  };
  const done = (work: Promise<unknown>) => {
    setAsked(null);
    attempt(work);
  };

  return (
    <nav className="threads" aria-label={t("threads.title")} onKeyDown={(event) => stroll(event, () => setSearch(""))}>
      <a className="button primary wide" href="#/" onClick={onChosen}>
        <Icon name="plus" /> {t("threads.new")}
      </a>
      <label className="search">
        <Icon name="search" size={16} />
        <input type="search" value={search} maxLength={MOST_LETTERS} onChange={(event) => setSearch(event.target.value)} placeholder={t("threads.search")} aria-label={t("threads.search")} />
      </label>
      {(archived || all.some((one) => one.archived) || !!further.value?.sessions.length) && (
        <div className="tabs small" role="group" aria-label={t("threads.title")}>
          <button type="button" aria-pressed={!archived} onClick={() => setArchived(false)}>
            {t("threads.current")}
          </button>
          <button type="button" aria-pressed={archived} onClick={() => setArchived(true)}>
            {t("threads.archived")}
          </button>
        </div>
      )}
      {problem && (
        <p className="error-text" role="alert">
          {problem}
        </p>
      )}
      <ul aria-busy={looking && found.busy}>
        {shown.map((entry) => (
          <ThreadEntry key={entry.threadId} entry={entry} current={entry.threadId === current} onChosen={onChosen} ask={setAsked} attempt={attempt} />
        ))}
        {looking
          ? answered && !found.problem && found.next !== null && <More key="found" busy={found.busy} more={found.more} />
          : older.next !== null && <More key="all" busy={older.busy} more={older.more} />}
      </ul>
      {looking ? <HowFound found={found} query={query} archived={archived} /> : threads.value && !shown.length && <p className="hint">{t(archived ? "threads.none_archived" : "threads.none")}</p>}
      {asked?.kind === "rename" && <Rename entry={asked.entry} onDone={(title) => done(patch(sessionPath(asked.entry.threadId), { title }))} onClose={() => setAsked(null)} />}
      {asked?.kind === "delete" && (
        <Confirm
          text={t("threads.delete_sure", { title: asked.entry.title ?? t("threads.untitled") })}
          word={t("app.delete")}
          onNo={() => setAsked(null)}
          onYes={() => done(erase(asked.entry.threadId))}
        />
      )}
    </nav>
  );
}

/** Arrows go from the search to the conversations and among them; Escape empties the search. */
function stroll(event: KeyboardEvent<HTMLElement>, clear: () => void): void {
  const here = event.target as HTMLElement;
  const inSearch = here instanceof HTMLInputElement && here.type === "search";
  const links = [...event.currentTarget.querySelectorAll<HTMLElement>("li > a")];
  const at = links.indexOf(here);
  if (event.key === "Escape" && inSearch) clear();
  if (event.nativeEvent.isComposing || (!inSearch && at < 0)) return;
  if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
  event.preventDefault();
  const next = at + (event.key === "ArrowDown" ? 1 : -1);
  (next < 0 ? event.currentTarget.querySelector<HTMLElement>("input[type=search]") : links[next])?.focus();
}

/** What came of a search, in a sentence that is also read aloud. */
function HowFound({ found, query, archived }: { found: Found; query: string; archived: boolean }) {
  const { t } = useWords();
  const answered = found.query !== null;
  const text = found.problem
    ? sentence(found.problem, t)
    : !answered
      ? t("threads.looking")
      : !found.complete
        ? t("threads.still_reading")
        : found.sessions.length
          ? ""
          : t(archived ? "threads.none_found_archived" : "threads.none_found", { query: query.trim() });
  return (
    <p className={found.problem ? "error-text" : "hint"} role={found.problem ? "alert" : "status"}>
      {text}
    </p>
  );
}

/** The end of the list: when it comes into sight the next page is read; it can be pressed as well. */
function More({ busy, more }: { busy: boolean; more: () => void }) {
  const { t } = useWords();
  const end = useRef<HTMLLIElement>(null);
  const latest = useRef({ busy, more });
  latest.current = { busy, more };
  useEffect(() => {
    const seen = new IntersectionObserver(
      (entries) => {
        if (entries.some((entry) => entry.isIntersecting) && !latest.current.busy) latest.current.more();
      },
      { rootMargin: "200px" },
    );
    if (end.current && !busy) seen.observe(end.current);
    return () => seen.disconnect();
  }, [busy]); // observed anew after each page, so that one that fills less than the place asks for the next
  return (
    <li ref={end} className="more">
      <button type="button" className="button quiet" disabled={busy} onClick={more}>
        {t(busy ? "app.loading" : "threads.older")}
      </button>
    </li>
  );
}

/** What was found, each word once. */
function wordsIn(snippet: Piece[]): string[] {
  return [...new Set(snippet.filter((piece) => piece.hit).map((piece) => piece.text.toLowerCase()))];
}

function Marked({ pieces }: { pieces: Piece[] }) {
  return pieces.map((piece, at) => (piece.hit ? <mark key={at}>{piece.text}</mark> : piece.text));
}

function ThreadEntry(props: { entry: SessionEntry; current: boolean; onChosen: () => void; ask: (asked: Asked) => void; attempt: (work: Promise<unknown>) => void }) {
  const { entry, current, onChosen, ask, attempt } = props;
  const { t, time, moment } = useWords();
  const { agentName } = useWorld();
  const said = entry.found?.message;
  const title = entry.title ?? t("threads.untitled");
  const path = sessionPath(entry.threadId);
  const take = (format: "markdown" | "json") => attempt(download(`${path}/export?format=${format}`, `${plain(title)}.${format === "json" ? "json" : "md"}`));
  const there = said ? toMessage(entry.threadId, { item: said.itemId, words: wordsIn(said.snippet) }) : toThread(entry.threadId);
  return (
    <li className={current ? "current" : ""}>
      <a href={there} onClick={onChosen} aria-current={current ? "page" : undefined} title={time(entry.updatedAt)}>
        <span className="thread-title">
          {entry.found?.title ? <Marked pieces={entry.found.title} /> : title}
          {entry.automationId && <small className="badge">{t("threads.job")}</small>}
        </span>
        {said && (
          <span className="thread-found">
            <span className="thread-by">
              {said.role === "user" ? t("threads.you") : agentName(said.agentId) || t("threads.agent")} · {moment(said.timestamp)}
            </span>
            <Marked pieces={said.snippet} />
          </span>
        )}
      </a>
      <Menu
        label={t("threads.menu", { title })}
        items={[
          { label: t("threads.rename"), act: () => ask({ kind: "rename", entry }) },
          { label: t(entry.archived ? "threads.unarchive" : "threads.archive"), act: () => attempt(patch(path, { archived: !entry.archived })) },
          { label: t("threads.export_md"), act: () => take("markdown") },
          { label: t("threads.export_json"), act: () => take("json") },
          { label: t("threads.delete"), act: () => ask({ kind: "delete", entry }), dangerous: true },
        ]}
      />
    </li>
  );
}

function plain(title: string): string {
  return title.replace(/[^\p{L}\p{N} _-]/gu, "").trim().slice(0, 60) || "conversation";
}

function Rename({ entry, onDone, onClose }: { entry: SessionEntry; onDone: (title: string) => void; onClose: () => void }) {
  const { t } = useWords();
  const [title, setTitle] = useState(entry.title ?? "");
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (title.trim()) onDone(title.trim());
  };
  return (
    <Dialog title={t("threads.rename")} onClose={onClose}>
      <form onSubmit={submit}>
        <label className="field">
          <span>{t("threads.name")}</span>
          <input value={title} maxLength={200} autoFocus onChange={(event) => setTitle(event.target.value)} />
        </label>
        <div className="row end">
          <button type="button" className="button" onClick={onClose}>
            {t("app.cancel")}
          </button>
          <button type="submit" className="button primary">
            {t("app.save")}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
