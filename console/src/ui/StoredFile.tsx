/** Files of the host's store that a person may see: a picture in place and large, everything else to take along. */
import { useState } from "react";
import { get } from "../api/client";
import type { ResultPart, StoredFile } from "../model/results";
import { useWords } from "../words";
import { asProblem, sentence, useLoaded } from "./data";
import { Icon } from "./icons";
import { Dialog, JsonView } from "./parts";

interface Stored {
  url: string;
  mimeType: string;
  size: number;
  filename?: string;
  width?: number;
  height?: number;
}

const pathOf = (id: string, download = false) => `/api/v1/agent/attachments/${encodeURIComponent(id)}${download ? "?download=true" : ""}`;

export function isOwn(address: string): boolean {
  try {
    return address !== "" && new URL(address, location.href).origin === location.origin;
  } catch {
    return false;
  }
}

/** The host signs an address to take it along; it counts for minutes, so it is asked for when it is wanted. */
async function save(id: string, name: string): Promise<void> {
  const { url } = await get<Stored>(pathOf(id, true));
  const link = document.createElement("a");
  link.href = url;
  link.download = name; // also when something goes wrong on the way: the page stays
  link.click();
}

/** What a tool gave back, part by part. `from` is the tool, for those who cannot see its pictures. */
export function ResultParts({ parts, from }: { parts: readonly ResultPart[]; from: string }) {
  return (
    <div className="result-parts">
      {parts.map((part, index) =>
        part.kind === "other" ? (
          <JsonView key={index} value={part.value} />
        ) : part.kind === "text" ? (
          <p key={index} className="ui-text" tabIndex={part.text.length > LONG ? 0 : undefined}>
            {part.text}
          </p>
        ) : (
          <FileView key={index} file={part} from={from} />
        ),
      )}
    </div>
  );
}
const LONG = 400;

export function FileView({ file, from }: { file: StoredFile; from: string }) {
  const { t } = useWords();
  if (file.id !== null && file.kind === "image") return <Picture id={file.id} file={file} from={from} />;
  return (
    <div className="stored-file">
      {file.id !== null ? <FileLink id={file.id} name={file.name} size={file.size} /> : <NotKept file={file} />}
      {file.problem && file.id !== null && (
        <p className="hint">
          {t("file.problem")} {file.problem}
        </p>
      )}
    </div>
  );
}

function NotKept({ file }: { file: StoredFile }) {
  const { t, size } = useWords();
  return (
    <p className="hint">
      <Icon name="file" size={16} /> {[file.name || file.mimeType || t("file.unnamed"), file.size === null ? "" : size(file.size)].filter(Boolean).join(", ")}: {file.problem}
    </p>
  );
}

/** A file by name and size; a click takes it along. */
export function FileLink({ id, name, size, label }: { id: string; name: string; size: number | null; label?: string }) {
  const { t, size: inWords } = useWords();
  const [problem, setProblem] = useState<string | null>(null);
  const called = name || t("file.unnamed");
  const take = () => {
    setProblem(null);
    save(id, called).catch((error: unknown) => {
      const said = asProblem(error);
      setProblem(said.status === 404 ? t("file.gone") : sentence(said, t));
    });
  };
  return (
    <>
      <button type="button" className="file-link" onClick={take} title={t("file.download")}>
        {!label && <Icon name="file" size={16} />}
        <span className="file-name">{label ?? called}</span>
        {size !== null && <span className="hint">{inWords(size)}</span>}
        <Icon name="download" size={16} />
      </button>
      {problem && (
        <p className="error-text" role="alert">
          {problem}
        </p>
      )}
    </>
  );
}

const HIGH = 320;
const AGAIN_MS = 3_000;

function Picture({ id, file, from }: { id: string; file: StoredFile; from: string }) {
  const { t, size } = useWords();
  const [away, setAway] = useState(false);
  const stored = useLoaded<Stored>(pathOf(id), away ? AGAIN_MS : 0);
  const unreached = !stored.value && stored.problem?.status === 0;
  if (away !== unreached) setAway(unreached); // it says that it tries again by itself
  const [failed, setFailed] = useState(0);
  const [large, setLarge] = useState(false);
  const found = stored.value;
  const name = file.name || found?.filename || t("file.unnamed");
  const alt = t("file.picture", { tool: from, name });
  if (stored.loading) return <p className="hint picture-room">{t("app.loading")}</p>;
  if (!found || failed > 1 || !isOwn(found.url))
    return (
      <p className="hint">
        <Icon name="file" size={16} /> {name}: {stored.problem && stored.problem.status !== 404 ? sentence(stored.problem, t) : t("file.gone")}
      </p>
    );
  // An address counts for some minutes: one that is over is asked for once more. It may be the same: the image is made anew.
  const again = () => (failed === 0 ? void stored.again().then(() => setFailed(1)) : setFailed(2));
  const { width = 0, height = 0 } = found;
  const scale = height > HIGH ? HIGH / height : 1;
  const room = width && height ? { width: Math.round(width * scale), height: Math.round(height * scale) } : {};
  return (
    <figure className="picture">
      <button type="button" className="picture-button" onClick={() => setLarge(true)} title={t("file.large")}>
        <img key={failed} src={found.url} alt={alt} loading="lazy" decoding="async" onError={again} {...room} />
      </button>
      <figcaption>
        <FileLink id={id} name={name} size={file.size ?? found.size} />
      </figcaption>
      {large && (
        <Dialog title={name} className="large-picture" shows onClose={() => setLarge(false)}>
          <img key={failed} src={found.url} alt={alt} onError={again} />
          <div className="row end">
            <span className="hint">{[width && height ? `${width} × ${height}` : "", size(found.size)].filter(Boolean).join(" · ")}</span>
            <FileLink id={id} name={name} size={null} label={t("file.download")} />
            <button type="button" className="button" onClick={() => setLarge(false)}>
              {t("app.close")}
            </button>
          </div>
        </Dialog>
      )}
    </figure>
  );
}
