/** Images on their way into a message: shown at once, uploaded in the background, refused with a sentence. */
import { useCallback, useEffect, useRef, useState } from "react";
import { Problem, upload } from "../api/client";
import { newId } from "../ui/anywhere";
import { asProblem, sentence } from "../ui/data";
import { useWords } from "../words";
import type { Upload } from "./send";
import type { Attachment as Stored } from "../api/types";

const MOST = 3;

interface Preview {
  key: string;
  name: string;
  preview: string;
  uploaded: Upload | null;
}
export interface Uploads {
  previews: Preview[];
  uploads: Upload[];
  busy: boolean;
  problem: string | null;
  add: (files: File[]) => void;
  drop: (key: string) => void;
  clear: () => void;
}

export function useUploads(): Uploads {
  const { t } = useWords();
  const [previews, setPreviews] = useState<Preview[]>([]);
  const [problem, setProblem] = useState<string | null>(null);
  const addresses = useRef(new Set<string>());
  useEffect(() => () => addresses.current.forEach((address) => URL.revokeObjectURL(address)), []);

  const drop = useCallback((key: string) => setPreviews((before) => before.filter((one) => one.key !== key)), []);
  const take = async (file: File, key: string) => {
    try {
      const uploaded = await uploadImage(file);
      setPreviews((before) => before.map((one) => (one.key === key ? { ...one, uploaded } : one)));
    } catch (error) {
      drop(key);
      const said = asProblem(error);
      setProblem(said instanceof Problem && said.status === 404 ? t("chat.no_attachments") : `${file.name}: ${sentence(said, t)}`);
    }
  };
  const add = (files: File[]) => {
    const room = MOST - previews.length;
    setProblem(files.length > room ? t("chat.most_images", { most: MOST, left: files.length - room }) : null);
    for (const file of files.slice(0, room)) {
      if (!file.type.startsWith("image/")) {
        setProblem(t("chat.only_images", { name: file.name }));
        continue;
      }
      const key = newId();
      const preview = URL.createObjectURL(file);
      addresses.current.add(preview);
      setPreviews((before) => [...before, { key, name: file.name, preview, uploaded: null }]);
      void take(file, key);
    }
  };
  return {
    previews,
    uploads: previews.flatMap((one) => (one.uploaded ? [one.uploaded] : [])),
    busy: previews.some((one) => one.uploaded === null),
    problem,
    add,
    drop,
    clear: () => setPreviews([]),
  };
}

async function uploadImage(file: File): Promise<Upload> {
  const form = new FormData();
  form.append("file", file, file.name);
  const stored = await upload<Stored>("/api/v1/agent/attachments", form);
  return { id: stored.attachmentId, name: file.name, mimeType: stored.mimeType ?? file.type, url: stored.url ?? "" };
}
