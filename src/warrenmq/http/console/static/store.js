// A value that components follow.
import { useState, useEffect } from "./html.js";

/** @template T */
export class Store {
  /** @param {T} value */
  constructor(value) {
    this.value = value;
    /** @type {Set<() => void>} */
    this.followers = new Set();
  }
  /** @param {T} value */
  set(value) {
    this.value = value;
    for (const follower of Array.from(this.followers)) follower();
  }
}

/** The value now, and again whenever it is another one.
 * @template T
 * @param {Store<T>} store
 * @returns {T} */
export function useStore(store) {
  const [, again] = useState(0);
  useEffect(() => {
    const follower = () => again(n => n + 1);
    store.followers.add(follower);
    return () => { store.followers.delete(follower); };
  }, [store]);
  return store.value;
}
