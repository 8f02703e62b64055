// A job or request that cannot be shown, and why.
import {ApiError} from '../api/client';
import {html} from '../ui/html';

export function Unknown({what, id, error}: {what: string; id: string; error: ApiError | undefined}) {
  if (error?.code === 'PERMISSION_DENIED' || error?.code === 'UNAUTHENTICATED') {
    return html`<h1>${what} ${id} is not shown to you</h1><p class="dim">The policy (private_jobs) shows jobs to their users and to operators.</p>`;
  }
  if (error !== undefined && error.code !== 'NOT_FOUND' && error.code !== 'INVALID_ARGUMENT') {
    return html`<h1>${what} ${id} could not be read</h1><p class="dim">${error.code}${error.message && `: ${error.message}`}</p>`;
  }
  return html`<h1>${what} ${id} is not known</h1>
    <p class="dim">The controller forgets jobs some time after they have ended. What is left of their events:
    <code>sidingctl events --job ${/^\d+$/.test(id) ? id : 'JOB'}</code></p>`;
}
