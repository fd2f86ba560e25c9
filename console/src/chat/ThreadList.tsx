/** The person's conversations: found by title, named, put away, exported, deleted. */
import { useMemo, useState, type FormEvent } from "react";
import { download, patch, remove } from "../api/client";
import type { SessionEntry } from "../api/shapes";
import { asProblem, sentence } from "../ui/data";
import { Icon } from "../ui/icons";
import { Confirm, Dialog, Menu } from "../ui/parts";
import { go, toThread } from "../ui/router";
import { useWords } from "../words";
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
  const all = threads.value?.sessions ?? [];
  const shown = useMemo(() => all.filter((one) => one.archived === archived && fits(one, search)), [all, archived, search]);

  const attempt = (work: Promise<unknown>) => {
    work.then(() => setProblem(null)).catch((error: unknown) => setProblem(sentence(asProblem(error), t))).finally(threads.again);
  };
  const done = (work: Promise<unknown>) => {
    setAsked(null);
    attempt(work);
  };

  return (
    <nav className="threads" aria-label={t("threads.title")}>
      <a className="button primary wide" href="#/" onClick={onChosen}>
        <Icon name="plus" /> {t("threads.new")}
      </a>
      <label className="search">
        <Icon name="search" size={16} />
        <input type="search" value={search} onChange={(event) => setSearch(event.target.value)} placeholder={t("threads.search")} aria-label={t("threads.search")} />
      </label>
      {all.some((one) => one.archived) && (
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
      <ul>
        {shown.map((entry) => (
          <ThreadEntry key={entry.threadId} entry={entry} current={entry.threadId === current} onChosen={onChosen} ask={setAsked} attempt={attempt} />
        ))}
      </ul>
      {threads.value && !shown.length && <p className="hint">{search ? t("threads.none_found") : t("threads.none")}</p>}
      {asked?.kind === "rename" && <Rename entry={asked.entry} onDone={(title) => done(patch(sessionPath(asked.entry.threadId), { title }))} onClose={() => setAsked(null)} />}
      {asked?.kind === "delete" && (
        <Confirm
          text={t("threads.delete_sure", { title: asked.entry.title ?? t("threads.untitled") })}
          word={t("app.delete")}
          onNo={() => setAsked(null)}
          onYes={() => {
            if (asked.entry.threadId === current) go("#/");
            done(remove(sessionPath(asked.entry.threadId)));
          }}
        />
      )}
    </nav>
  );
}

function fits(entry: SessionEntry, search: string): boolean {
  return (entry.title ?? "").toLowerCase().includes(search.trim().toLowerCase());
}

function ThreadEntry(props: { entry: SessionEntry; current: boolean; onChosen: () => void; ask: (asked: Asked) => void; attempt: (work: Promise<unknown>) => void }) {
  const { entry, current, onChosen, ask, attempt } = props;
  const { t, time } = useWords();
  const title = entry.title ?? t("threads.untitled");
  const path = sessionPath(entry.threadId);
  const take = (format: "markdown" | "json") => attempt(download(`${path}/export?format=${format}`, `${plain(title)}.${format === "json" ? "json" : "md"}`));
  return (
    <li className={current ? "current" : ""}>
      <a href={toThread(entry.threadId)} onClick={onChosen} aria-current={current ? "page" : undefined} title={time(entry.updatedAt)}>
        {title}
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
