/** What an operator looks at: what goes on, what waits, what was decided, who may come in, what it costs. */
import { useWorld } from "../chat/world";
import { Notice } from "../ui/parts";
import { toSection } from "../ui/router";
import { useWords } from "../words";
import type { WordKey } from "../words/en";
import { AutomationsPart } from "./automations";
import { CalendarPart } from "./calendar";
import { ApprovalsPart, AuditPart } from "./decisions";
import { DeliveriesPart } from "./deliveries";
import { KeysPart } from "./keys";
import { KnowledgePart } from "./knowledge";
import { RunsPart } from "./runs";
import { UsagePart } from "./usage";

const SECTIONS = ["live", "approvals", "usage", "audit", "keys", "knowledge", "automations", "calendar", "deliveries"] as const;
const FOR_ADMINS = new Set<string>(["audit", "keys", "deliveries"]);

export default function OperatePage({ section }: { section: string }) {
  const { t } = useWords();
  const { admin, me } = useWorld();
  const chosen = SECTIONS.find((one) => one === section) ?? "live";
  return (
    <div className="page" tabIndex={0}>
      <div className="page-inner">
        <header className="page-head">
          <h1>{t("op.title")}</h1>
        </header>
        <nav className="tabs" aria-label={t("op.sections")}>
          {SECTIONS.map((one) => (
            <a key={one} href={toSection(one)} aria-current={one === chosen ? "page" : undefined}>
              {t(`op.${one}` as WordKey)}
            </a>
          ))}
        </nav>
        {FOR_ADMINS.has(chosen) && me.value && !admin ? <Notice tone="wait" title={t("op.only_admin")} /> : <Part of={chosen} />}
      </div>
    </div>
  );
}

function Part({ of }: { of: (typeof SECTIONS)[number] }) {
  switch (of) {
    case "live":
      return <RunsPart />;
    case "approvals":
      return <ApprovalsPart />;
    case "usage":
      return <UsagePart />;
    case "audit":
      return <AuditPart />;
    case "keys":
      return <KeysPart />;
    case "knowledge":
      return <KnowledgePart />;
    case "automations":
      return <AutomationsPart />;
    case "calendar":
      return <CalendarPart />;
    case "deliveries":
      return <DeliveriesPart />;
  }
}
