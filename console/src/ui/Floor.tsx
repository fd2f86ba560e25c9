/** A floor under every page: what breaks inside is said in its place, and the way to the other pages stays. */
import { Component, type ReactNode } from "react";
import { useWords } from "../words";
import { Notice } from "./parts";

/** Give it a `key` for the place one is at: elsewhere everything is as if nothing had been. */
export class Floor extends Component<{ children: ReactNode }, { broken: boolean }> {
  override state = { broken: false };

  static getDerivedStateFromError(): { broken: boolean } {
    return { broken: true };
  }

  override render(): ReactNode {
    return this.state.broken ? <Broken /> : this.props.children;
  }
}

function Broken() {
  const { t } = useWords();
  return (
    <Notice tone="bad" title={t("app.broken")}>
      <p>{t("app.reload_loses")}</p>
      <button type="button" className="button" onClick={() => location.reload()}>
        {t("app.reload")}
      </button>
    </Notice>
  );
}
