// In place of jobs that this reader is not told of: that there are none would be a guess.
import {html} from '../ui/html';

export const HiddenJobs = () => html`<h1>No jobs are shown to you</h1>
  <p class="dim lead">The policy (<code>private_jobs</code>) shows jobs, and deadlines with them, to their users and to operators
  alone. They see them with <code>sidingctl page</code>. Nodes are for everybody.</p>`;
