// The stream of events as it comes over the wire.
import {Event} from '../../generated/api';
import {decode} from './decode';
import {SseReader} from './sse';

// What came in one piece. Nothing in it: a sign of life.
export interface Piece {
  begins: number | undefined;  // the event behind which the stream begins: said once, before all else. It may be older than what was asked for
  events: Event[];
  seq: number;                 // up to which all has been said, what is not for this reader included; 0: not said
}

export class PieceReader {
  private readonly sse = new SseReader();
  private hasBegun = false;

  read(text: string): Piece {
    const parts = this.sse.read(text), seq = Number(this.sse.lastId) || 0;
    return {begins: this.begin(), events: parts.map(part => decode('Event', JSON.parse(part))), seq};
  }

  private begin(): number | undefined {
    if (this.hasBegun || this.sse.firstId === undefined) return undefined;
    this.hasBegun = true;
    return Number(this.sse.firstId) || 0;
  }
}
