// The dialogs that keys and the rail open.
import { later } from './lazy.js';

export const Launch = later('Launch');
export const NewTerminal = later('NewTerminal');
export const Palette = later('Palette');
export const Keys = later('Keys');
