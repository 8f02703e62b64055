// What a request would cost, asked as its form is filled in.
import {useEffect, useRef, useState} from 'preact/hooks';
import {Plan} from '../../generated/api';
import {ApiError, Dated, readPlan} from '../api/client';
import {Form, formText, otherDeadlines, questionOf, requestOf} from '../model/whatif';
import {Asker} from './asker';
import {controllerNowUs, standing} from './live';

export interface WhatIf {
  form: Form;      // of which this is the answer
  plan: Plan;
  askedUs: number; // by the controller's clock
}
export interface Other {
  by: string;
  plan: Plan | undefined;       // undefined: not answered yet
  error: ApiError | undefined;
}
interface Answers {
  last: WhatIf | undefined;     // it stays until there is another one
  error: ApiError | undefined;
  others: readonly Other[];     // the same request by other deadlines
  isOld: boolean;               // the form is another one by now
}
type Told = WhatIf & Dated;

async function planOf(form: Form): Promise<Told> {
  const askedUs = controllerNowUs(), {request} = requestOf(form, askedUs);
  if (request === undefined) throw new ApiError('INVALID_ARGUMENT', 'the form cannot be read');
  const plan = await readPlan(questionOf(request));
  return {form, plan, askedUs, asOfMs: plan.asOfMs};
}

const withOther = (others: readonly Other[], by: string, more: Partial<Other>): Other[] => others.map(each => (each.by === by ? {...each, ...more} : each));

// `anew`: another number asks once more.
export function useWhatIf(form: Form | undefined, anew: number): Answers {
  const [answers, setAnswers] = useState<Answers>({last: undefined, error: undefined, others: [], isOld: false}), asker = useRef<Asker<Form, Told> | undefined>(undefined);
  asker.current ??= new Asker<Form, Told>({
    ask: planOf,
    more: (question, {plan, askedUs}) => otherDeadlines(question, plan, askedUs).map(by => ({...question, by})),
    answered: (question, told, first) => setAnswers(now => (first
      ? {last: told, error: undefined, isOld: false, others: otherDeadlines(question, told.plan, told.askedUs).map(by => ({by, plan: undefined, error: undefined}))}
      : {...now, others: withOther(now.others, question.by, {plan: told.plan})})),
    failed: (question, error, first) => setAnswers(now => {
      if (error.code === 'RESOURCE_EXHAUSTED') return first ? {...now, error} : now;
      return first ? {last: undefined, error, others: [], isOld: false} : {...now, others: withOther(now.others, question.by, {error})};
    }),
  });
  const key = form === undefined ? '' : formText(form), live = standing.value === 'live', isFirst = useRef(true);
  useEffect(() => {
    asker.current?.want(live ? form : undefined, isFirst.current ? 0 : undefined);
    isFirst.current = false;
    setAnswers(now => ({...now, isOld: now.last !== undefined}));
  }, [key, form === undefined, live, anew]);
  useEffect(() => () => asker.current?.want(undefined), []);
  return answers;
}
