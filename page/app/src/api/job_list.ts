// A list of jobs that is asked for again and again: after the first answer only what is different comes.
//
// What is kept here is what the server has told of one version of the list, and nothing else: what is read of single jobs in between, which
// may be newer or older, has no part in it. So its end is the whole list as the server has it now, whatever happened meanwhile.
import {Job, JobChanges} from '../../generated/api';

export interface JobList {
  version: string;  // '': nothing has been told yet
  jobs: ReadonlyMap<number, Job>;
}

export const NO_LIST: JobList = {version: '', jobs: new Map()};

// `list`: the one whose version was asked with.
export function withChanges(list: JobList, {version, whole, jobs, gone}: JobChanges): JobList {
  const now = new Map(whole ? [] : list.jobs);
  for (const id of gone) now.delete(id);  // before the jobs: one may have come back
  for (const job of jobs) now.set(job.id, job);
  return {version, jobs: now};
}
