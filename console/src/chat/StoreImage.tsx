/** An image from the host's own store. Anything that is not there is not shown, whoever asks for it. */
import { useState } from "react";
import { useLoaded } from "../ui/data";
import { isOwn } from "../ui/StoredFile";
import { useWords } from "../words";

/** `id` alone will do: the host signs an address for whoever may see the image. */
export function StoreImage({ url, id, alt }: { url: string; id?: string | undefined; alt: string }) {
  const { t } = useWords();
  const [broken, setBroken] = useState(false);
  const signed = useLoaded<{ url: string }>(url || !id ? null : `/api/v1/agent/attachments/${encodeURIComponent(id)}`);
  const address = url || (signed.value?.url ?? "");
  if (signed.loading) return <span className="hint">{t("app.loading")}</span>;
  if (broken || !isOwn(address)) return <span className="blocked-image">[{t("chat.image_blocked")}{alt ? `: ${alt}` : ""}]</span>;
  return <img src={address} alt={alt} loading="lazy" onError={() => setBroken(true)} />;
}
