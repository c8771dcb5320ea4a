export function useState<T>(first: T | (() => T)): [T, (next: T | ((now: T) => T)) => void];
export function useEffect(effect: () => void | (() => void), on?: unknown[]): void;
export function useLayoutEffect(effect: () => void | (() => void), on?: unknown[]): void;
export function useRef<T>(first: T): { current: T };
export function useMemo<T>(make: () => T, on: unknown[]): T;
export function useCallback<T>(call: T, on: unknown[]): T;
