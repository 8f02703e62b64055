// Asks as somebody types: a while after the last key, one question at a time, and further ones while nothing new is wanted.
import {ApiError} from '../api/client';

export const PAUSE_MS = 150;
export const BUSY_MS = 1_000;  // until it is tried again, where the server is asked too much

interface Ear<Q, A> {
  ask: (question: Q) => Promise<A>;
  more: (question: Q, answer: A) => Q[];               // the further ones, when the first has been answered
  answered: (question: Q, answer: A, first: boolean) => void;
  failed: (question: Q, error: ApiError, first: boolean) => void;  // where it is only too much, it is asked once more
}

export class Asker<Q, A> {
  private waiting: Q[] = [];
  private isFirst = true;
  private round = 0;       // of what is wanted; answers to earlier ones are for nobody
  private isAsking = false;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly ear: Ear<Q, A>) {}

  // undefined: nothing.
  want(question: Q | undefined, pauseMs = PAUSE_MS): void {
    ++this.round;
    this.waiting = question === undefined ? [] : [question];
    this.isFirst = true;
    this.later(pauseMs);
  }

  private later(ms: number): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      this.timer = undefined;
      void this.next();
    }, ms);
  }

  private async next(): Promise<void> {
    const question = this.waiting[0], {round, isFirst} = this;
    if (this.isAsking || this.timer !== undefined || question === undefined) return;
    this.isAsking = true;
    const outcome = await this.ear.ask(question).then(answer => ({answer}), (error: unknown) => ({error: error instanceof ApiError ? error : new ApiError('UNREACHABLE', String(error))}));
    this.isAsking = false;
    if (round === this.round) this.take(question, outcome, isFirst);
    void this.next();
  }

  private take(question: Q, outcome: {answer: A} | {error: ApiError}, isFirst: boolean): void {
    if ('error' in outcome) {
      this.ear.failed(question, outcome.error, isFirst);
      if (outcome.error.code === 'RESOURCE_EXHAUSTED') this.later(BUSY_MS);
      else this.waiting.shift();
      return;
    }
    this.waiting = isFirst ? this.ear.more(question, outcome.answer) : this.waiting.slice(1);
    this.isFirst = false;
    this.ear.answered(question, outcome.answer, isFirst);
  }
}
