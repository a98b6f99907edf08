// The dialogs that keys and the rail open; each is loaded with its area.
import { lazy } from './lazy.js';

export const Launch = lazy(() => import('./agent/launch.js'), 'Launch');
export const NewTerminal = lazy(() => import('./terminal/new.js'), 'NewTerminal');
export const Palette = lazy(() => import('./palette.js'), 'Palette');
export const Keys = lazy(() => import('./rest/keys.js'), 'Keys');
