/** The frame of every page: where one can go, who one is, and the page itself. */
import { useEffect, useState, type FormEvent } from "react";
import AgentsPage from "../agents/AgentsPage";
import { confirmFreshKey, freshKey, keyOfThisTab, onFreshKey, onStranger, rememberKey } from "../api/client";
import { ChatPage } from "../chat/ChatPage";
import { ThreadList } from "../chat/ThreadList";
import { Knowing, useWorld } from "../chat/world";
import OperatePage from "../operate/OperatePage";
import RunPage from "../run/RunPage";
import { useWords, type Language } from "../words";
import { Floor } from "./Floor";
import { Icon, type IconName } from "./icons";
import { forgetSeen } from "../chat/follow";
import { forgetKept } from "./kept";
import { CodeBlock } from "./Markdown";
import { Dialog, ProblemNotice } from "./parts";
import { usePlace, type Place } from "./router";
import { chosenTheme, showTheme, type Theme } from "./theme";

export function App() {
  const [stranger, setStranger] = useState(false);
  const [round, setRound] = useState(0);
  const [fresh, setFresh] = useState(freshKey);
  useEffect(() => onStranger(() => setStranger(true)), []);
  useEffect(() => onFreshKey(() => (setFresh(freshKey()), setStranger(false))), []);
  if (fresh)
    return (
      <FreshKey
        value={fresh}
        onKept={() => {
          confirmFreshKey();
          setFresh(null);
          setStranger(false);
          setRound(round + 1);
        }}
      />
    );
  if (stranger)
    return (
      <SignIn
        wrong={keyOfThisTab() !== null}
        onKey={(key) => {
          if (key !== keyOfThisTab()) (forgetKept(), forgetSeen());
          rememberKey(key);
          setStranger(false);
          setRound(round + 1);
        }}
      />
    );
  return (
    <Knowing key={round}>
      <Frame />
    </Knowing>
  );
}

function FreshKey({ value, onKept }: { value: string; onKept: () => void }) {
  const { t } = useWords();
  return (
    <main className="sign-in">
      <h1>Paddock</h1>
      <h2>{t("fresh.title")}</h2>
      <p>{t("fresh.text")}</p>
      <CodeBlock text={value} />
      <p>{t("fresh.tab")}</p>
      <button type="button" className="button primary" onClick={onKept}>
        {t("fresh.kept")}
      </button>
    </main>
  );
}

function SignIn({ wrong, onKey }: { wrong: boolean; onKey: (key: string) => void }) {
  const { t } = useWords();
  const [key, setKey] = useState("");
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (key.trim()) onKey(key.trim());
  };
  return (
    <main className="sign-in">
      <h1>Paddock</h1>
      <h2>{t("sign.title")}</h2>
      <p>{t("sign.text")}</p>
      <form onSubmit={submit}>
        <label className="field">
          <span>{t("sign.key")}</span>
          <input type="password" autoComplete="off" spellCheck={false} autoFocus value={key} onChange={(event) => setKey(event.target.value)} aria-invalid={wrong} />
        </label>
        {wrong && (
          <p className="error-text" role="alert">
            {t("sign.wrong")}
          </p>
        )}
        <button type="submit" className="button primary">
          {t("sign.enter")}
        </button>
      </form>
      <p className="hint">
        {t("sign.make")} <code>paddock keys create --user NAME</code>
      </p>
    </main>
  );
}

function Frame() {
  const { t } = useWords();
  const place = usePlace();
  const { me, agents } = useWorld();
  const [drawer, setDrawer] = useState(false);
  const [settings, setSettings] = useState(false);
  useEffect(() => {
    const close = () => setDrawer(false);
    window.addEventListener("hashchange", close);
    return () => window.removeEventListener("hashchange", close);
  }, []);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => event.key === "Escape" && setDrawer(false);
    window.addEventListener("keydown", onKey);
    return () => window.removeEventListener("keydown", onKey);
  }, []);
  return (
    <div className={`frame${drawer ? " open" : ""}`}>
      <a className="skip" href="#content" onClick={(event) => focusContent(event)}>
        {t("app.skip")}
      </a>
      <div className="bar">
        <button type="button" className="icon-button" onClick={() => setDrawer(!drawer)} aria-expanded={drawer} aria-label={t("app.menu")}>
          <Icon name={drawer ? "close" : "menu"} />
        </button>
        <strong>Paddock</strong>
      </div>
      <aside className="side">
        <div className="brand">
          <Mark /> <strong>Paddock</strong>
          <button type="button" className="icon-button" onClick={() => setSettings(true)} aria-label={t("app.settings")} title={t("app.settings")}>
            <Icon name="gear" />
          </button>
        </div>
        <nav className="pages" aria-label={t("app.menu")}>
          <PageLink to="#/" icon="chat" name={t("app.chat")} current={place.page === "chat" || place.page === "run"} />
          <PageLink to="#/agents" icon="agents" name={t("app.agents")} current={place.page === "agents"} />
          <PageLink to="#/operate" icon="gauge" name={t("app.operate")} current={place.page === "operate"} />
        </nav>
        <ThreadList current={place.page === "chat" ? place.thread : null} onChosen={() => setDrawer(false)} />
      </aside>
      <button type="button" className="veil" tabIndex={-1} aria-hidden="true" onClick={() => setDrawer(false)} />
      <main id="content" tabIndex={-1}>
        {agents.problem && !agents.value && agents.problem.status !== 401 && <ProblemNotice problem={agents.problem} again={agents.again} />}
        <Floor key={place.page}>
          <Page place={place} />
        </Floor>
      </main>
      {settings && <Settings who={me.value ? t("app.you_are", { user: me.value.userId, workspace: me.value.workspaceId }) : ""} onClose={() => setSettings(false)} />}
    </div>
  );
}

function focusContent(event: React.MouseEvent): void {
  event.preventDefault();
  document.getElementById("content")?.focus();
}

function Page({ place }: { place: Place }) {
  switch (place.page) {
    case "chat":
      return <ChatPage thread={place.thread} agent={place.agent} sought={place.sought ?? null} />;
    case "run":
      return <RunPage run={place.run} other={place.other} />;
    case "agents":
      return <AgentsPage agent={place.agent} />;
    case "operate":
      return <OperatePage section={place.section} />;
  }
}

function PageLink({ to, icon, name, current }: { to: string; icon: IconName; name: string; current: boolean }) {
  return (
    <a href={to} aria-current={current ? "page" : undefined}>
      <Icon name={icon} /> <span>{name}</span>
    </a>
  );
}

function Mark() {
  return (
    <svg width="26" height="26" viewBox="0 0 32 32" aria-hidden="true">
      <rect width="32" height="32" rx="8" className="mark-ground" />
      <path d="M7 11v12M25 11v12M7 14h18M7 20h18M16 8v15" stroke="#fff" strokeWidth="2.4" strokeLinecap="round" fill="none" />
    </svg>
  );
}

function Settings({ who, onClose }: { who: string; onClose: () => void }) {
  const { t, language, choose } = useWords();
  const [theme, setTheme] = useState<Theme>(chosenTheme);
  return (
    <Dialog title={t("app.settings")} onClose={onClose}>
      <p className="hint">{who}</p>
      <label className="field">
        <span>{t("app.language")}</span>
        <select value={language} onChange={(event) => choose(event.target.value as Language)}>
          <option value="en">English</option>
          <option value="zh">简体中文</option>
        </select>
      </label>
      <label className="field">
        <span>{t("app.theme")}</span>
        <select
          value={theme}
          onChange={(event) => {
            setTheme(event.target.value as Theme);
            showTheme(event.target.value as Theme);
          }}
        >
          <option value="system">{t("app.theme.system")}</option>
          <option value="light">{t("app.theme.light")}</option>
          <option value="dark">{t("app.theme.dark")}</option>
        </select>
      </label>
      <p>
        <a href="/api/docs" target="_blank" rel="noopener">
          {t("app.api")}
        </a>
      </p>
      <div className="row end">
        {keyOfThisTab() && (
          <button
            type="button"
            className="button"
            onClick={() => {
              rememberKey(null);
              location.reload();
            }}
          >
            {t("app.sign_out")}
          </button>
        )}
        <button type="button" className="button primary" onClick={onClose}>
          {t("app.close")}
        </button>
      </div>
    </Dialog>
  );
}
