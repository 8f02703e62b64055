// The views that there are: navigation, keys and titles come from here.
import {VNode} from 'preact';
import {JobView} from '../views/job';
import {JobsView} from '../views/jobs';
import {NowView} from '../views/now';
import {PolicyView} from '../views/policy';
import {PreemptionView} from '../views/preemption';
import {PreemptionsView} from '../views/preemptions';
import {TrendsView} from '../views/trends';
import {WhatIfView} from '../views/whatif';

interface View {
  show: (props: {id: string; query: string}) => VNode;
  tab: string;  // that is marked while it is shown
}
export const VIEWS: Record<string, View> = {
  now: {show: NowView, tab: 'now'},
  preemptions: {show: PreemptionsView, tab: 'preemptions'},
  preemption: {show: PreemptionView, tab: 'preemptions'},
  jobs: {show: JobsView, tab: 'jobs'},
  job: {show: JobView, tab: 'jobs'},
  whatif: {show: WhatIfView, tab: 'whatif'},
  trends: {show: TrendsView, tab: 'trends'},
  policy: {show: PolicyView, tab: 'policy'},
};
