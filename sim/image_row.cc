#include "sim/image_row.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "common/mutex.h"
#include "model/compaction.h"

namespace siding::sim {
namespace {

// Half of it is enough for a row to be like it will ever be, and for its means.
constexpr int kPlayed = 4096, kHalf = kPlayed / 2;
// Images of a round: no fewer than a job's costs are learned from (model/checkpoint_cost.h).
constexpr int kShortest = 10, kLongest = 20;
// Of rounds that are as near as that to the mean the shortest is taken.
constexpr double kNear = 1e-9;
// store/parents.h
constexpr size_t kMostParents = 8;

}  // namespace

ImageRow::ImageRow(double written_share, bool same_pages) {
  const std::vector<Image> row = Play(written_share, same_pages);
  const auto mean = [&](int from, int images) {
    double sum = 0;
    for (int i = from; i < from + images; ++i) sum += row[i].written;
    return sum / images;
  };
  const double wanted = mean(kHalf, kHalf);
  int round = 0, length = 0;
  double off = 2;
  for (int images = kShortest; images <= kLongest; ++images) {
    for (int from = kHalf; from + images <= kPlayed; ++from) {
      const double its = std::abs(mean(from, images) - wanted);
      if (its > off - kNear) continue;
      off = its, round = from, length = images;
    }
  }
  images_.assign(row.begin(), row.begin() + kFirst);
  images_.insert(images_.end(), row.begin() + round, row.begin() + round + length);

  mean_new_.resize(kHalf + 1);
  for (int i = kHalf; i < kPlayed; ++i)
    for (const Layer& layer : row[i].layers)
      mean_new_[std::min(i - layer.made + 1, kHalf)] += layer.stored / kHalf;
  for (size_t n = 1; n < mean_new_.size(); ++n) mean_new_[n] += mean_new_[n - 1];
}

std::vector<ImageRow::Image> ImageRow::Play(double written_share, bool same_pages) {
  std::vector<Image> row = {{1, {{0, 1}}}};
  std::vector<SharedLayer> layers = {{1, 1}};
  while (std::ssize(row) < kPlayed) {
    if (same_pages) {
      layers.front().used -= written_share;
    } else {
      for (SharedLayer& layer : layers) layer.used *= 1 - written_share;
    }
    Image next{written_share, row.back().layers};
    const std::vector<size_t> again = LayersToWriteAgain(layers, written_share, kMostParents);
    for (size_t i = again.size(); i-- > 0;) {
      const auto at = static_cast<std::ptrdiff_t>(again[i]);
      next.written += layers[again[i]].used;
      layers.erase(layers.begin() + at);
      next.layers.erase(next.layers.begin() + at);
    }
    layers.insert(layers.begin(), {next.written, next.written});
    next.layers.insert(next.layers.begin(), {static_cast<int>(row.size()), next.written});
    row.push_back(std::move(next));
  }
  return row;
}

size_t ImageRow::PlaceOf(double image) const {
  return static_cast<size_t>(image < kFirst ? image : kFirst + std::fmod(image - kFirst, round()));
}

double ImageRow::MeanShare() const {
  double sum = 0;
  for (int i = 0; i < round(); ++i) sum += Share(kFirst + i);
  return sum / round();
}

double ImageRow::Sharing() const {
  double sum = 0;
  for (int i = 0; i < round(); ++i) sum += IsWhole(kFirst + i) ? 0 : 1;
  return sum / round();
}

double ImageRow::NewSince(double image, double earlier) const {
  if (image >= kFirst) return earlier < 0 ? mean_new_.back() : MeanNew(image - earlier);
  double sum = 0;
  for (const Layer& layer : images_[PlaceOf(image)].layers)
    if (layer.made > earlier) sum += layer.stored;
  return sum;
}

double ImageRow::MeanNew(double n) const {
  return mean_new_[static_cast<size_t>(std::min<double>(n, kHalf))];
}

const ImageRow& RowOf(double written_share, bool same_pages) {
  static Mutex mutex;
  static auto& rows = *new std::map<std::pair<double, bool>, ImageRow>;
  MutexLock lock(mutex);
  const auto [row, is_new] =
      rows.try_emplace(std::pair(written_share, same_pages), written_share, same_pages);
  return row->second;
}

}  // namespace siding::sim
