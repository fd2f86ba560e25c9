/** An image from the host's own store. Anything that is not there is not shown, whoever asks for it. */
import { useState } from "react";
import { useWords } from "../words";

export function isOwn(address: string): boolean {
  try {
    return new URL(address, location.href).origin === location.origin;
  } catch {
    return false;
  }
}

export function StoreImage({ url, alt }: { url: string; alt: string }) {
  const { t } = useWords();
  const [broken, setBroken] = useState(false);
  if (broken || !isOwn(url)) return <span className="blocked-image">[{t("chat.image_blocked")}{alt ? `: ${alt}` : ""}]</span>;
  return <img src={url} alt={alt} loading="lazy" onError={() => setBroken(true)} />;
}
