// Server-sent events from the text of a response. The browser's EventSource is of no use here: it does not tell of comments, by which
// the page knows that the controller is there, nor why a stream was refused.

// Takes text as it comes; answers the data of the events that have become whole.
export class SseReader {
  firstId: string | undefined;
  lastId = '';  // of the last event that has been answered, or of a mark without one
  private id: string | undefined;  // of the one that is being read
  private rest = '';
  private data: string[] = [];

  read(text: string): string[] {
    const lines = (this.rest + text).split(/\r\n|\n|\r(?!$)/);
    this.rest = lines.pop() ?? '';
    const events: string[] = [];
    for (const line of lines) {
      if (line !== '') {
        this.field(line);
        continue;
      }
      // An id counts from here: whoever comes back with one that came before its event would never get that event.
      this.lastId = this.id ?? '';
      this.firstId ??= this.id;
      if (this.data.length > 0) events.push(this.data.join('\n'));
      this.data = [];
    }
    return events;
  }

  private field(line: string): void {
    const colon = line.indexOf(':');  // of a comment it is the first
    const name = colon < 0 ? line : line.slice(0, colon);
    const text = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (name === 'data') this.data.push(text);
    if (name === 'id') this.id = text;
  }
}
