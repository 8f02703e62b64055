// The images of a job that share pages: the first is whole, and those behind it have what was written since,
// and what is written again of earlier ones (model/compaction.h). Images are numbered from 0. Shares are of
// the job's memory.
#pragma once

#include <cstddef>
#include <vector>

namespace siding::sim {

// Immutable.
class ImageRow {
 public:
  // So many are as they come. Then a part of a long row comes again and again, a round: the one that writes
  // what the row does in the mean, as nearly as can be.
  static constexpr int kFirst = 12;

  // Of a job that writes such a share of its memory from one image to the next, at random places, so that
  // what earlier images have is overwritten everywhere; or the same pages each time. With 1 each image is
  // whole.
  explicit ImageRow(double written_share, bool same_pages = false);

  int round() const { return static_cast<int>(images_.size()) - kFirst; }
  bool IsWhole(double image) const { return images_[PlaceOf(image)].layers.size() == 1; }
  // That it writes.
  double Share(double image) const { return images_[PlaceOf(image)].written; }
  double MeanShare() const;
  // Of the images, those that share pages.
  double Sharing() const;
  // What an image needs, with those that it shares pages of, that is not there with an earlier one; -1: with
  // none. Behind the first ones the mean.
  double NewSince(double image, double earlier) const;
  // The same if each n-th image is there, the mean. Never less for a larger n.
  double MeanNew(double n) const;

 private:
  struct Layer {
    int made = 0;  // by which image
    double stored = 0;
  };
  struct Image {
    double written = 0;
    std::vector<Layer> layers;  // that it keeps, its own among them; newest first
  };
  static std::vector<Image> Play(double written_share, bool same_pages);
  size_t PlaceOf(double image) const;

  std::vector<Image> images_;     // the first, then those of the round
  std::vector<double> mean_new_;  // by n; the last is all
};

// The row of such a job. It lives as long as the program. Thread-safe.
const ImageRow& RowOf(double written_share, bool same_pages = false);

}  // namespace siding::sim
