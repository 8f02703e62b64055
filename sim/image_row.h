// The images of a job that share pages: a whole one, and those behind it that have what was written since.
// Images are numbered from 0, which is whole. Shares are of the job's memory.
#pragma once

namespace siding::sim {

struct ImageRow {
  int images = 1;          // from a whole one to the next, the whole one included
  bool stops_job = false;  // the whole one does as criu does: no earlier one was written beside the job
  double written = 1;      // in an image that is not whole

  bool IsWhole(double image) const { return PlaceOf(image) == 0; }
  double Share(double image) const { return IsWhole(image) ? 1 : written; }
  // What an image needs, with those of its row before it, that is not there with an earlier one; -1: with
  // none.
  double NewSince(double image, double earlier) const;
  // The same if each n-th image is there, the mean.
  double MeanNew(double n) const;

 private:
  double PlaceOf(double image) const;
};

// Of a job that writes such a share of its memory from one image to the next.
ImageRow RowOf(double written_share);

}  // namespace siding::sim
