// The way to the page of the controller that acts, from that of one that stands by.
import {Active} from '../api/client';

const LOOPBACK = /^https?:\/\/(localhost|127(\.\d+){3}|\[::1\])(:(\d+))?$/;

export interface Way {
  address: string;  // '': there is no page
  tunnel: string;   // the command that brings it to this machine first; '': none is needed
}

export function wayTo({page, host, isHere}: Active): Way {
  const loopback = LOOPBACK.exec(page);
  if (page === '' || isHere || loopback === null) return {address: page === '' ? '' : `${page}/`, tunnel: ''};
  const port = loopback[4] ?? '80';
  return {address: `${page}/`, tunnel: `ssh -L ${port}:${loopback[1]}:${port} ${host}`};
}
