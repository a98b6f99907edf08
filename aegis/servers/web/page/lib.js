// The libraries, at one place: the rest of the page imports only this module.
import htm from 'htm';
import { Fragment, h, render } from 'preact';
import {
  useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState,
} from 'preact/hooks';
import { batch, computed, effect, signal, untracked, useComputed,
  useSignal } from '@preact/signals';

export { Fragment, h, render };
export { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState };
export { batch, computed, effect, signal, untracked, useComputed, useSignal };
export const html = htm.bind(h);
