// Elements as tagged templates.
import htm from 'htm';
import {ComponentChildren, VNode, h} from 'preact';

export const html = htm.bind(h) as (strings: TemplateStringsArray, ...values: unknown[]) => VNode;
export type Child = ComponentChildren;
