#include "model/compaction.h"

#include <algorithm>
#include <numeric>

namespace siding {
namespace {

class Compaction {
 public:
  Compaction(const std::vector<SharedLayer>& layers, double fresh)
      : layers_(layers), kept_(layers.size()), written_(fresh), stored_(fresh), all_(fresh) {
    std::iota(kept_.begin(), kept_.end(), size_t{0});
    for (const SharedLayer& layer : layers) {
      stored_ += layer.stored;
      all_ += layer.used;
    }
  }

  void DropUnused() {
    for (size_t i = kept_.size(); i-- > 0;)
      if (layers_[kept_[i]].used <= 0) Drop(i);
  }
  void DropGarbage() {
    const auto pays_less = [&](size_t a, size_t b) {
      const SharedLayer &one = layers_[a], &other = layers_[b];
      return one.stored * other.used < other.stored * one.used;
    };
    while (!kept_.empty() && stored_ > kMostStored * all_)
      Drop(static_cast<size_t>(std::max_element(kept_.begin(), kept_.end(), pays_less) - kept_.begin()));
  }
  void DropSmall(size_t most) {
    if (kept_.size() <= most) return;
    const auto is_smaller = [&](size_t a, size_t b) { return layers_[a].used < layers_[b].used; };
    while (!kept_.empty()) {
      const auto smallest = std::min_element(kept_.begin(), kept_.end(), is_smaller);
      if (kept_.size() <= most && layers_[*smallest].used > written_) return;
      Drop(static_cast<size_t>(smallest - kept_.begin()));
    }
  }
  void DropAllIfLittleIsShared() {
    while (!kept_.empty() && IsTooMuchNew(written_, all_)) Drop(0);
  }

  std::vector<size_t> dropped() {
    std::sort(dropped_.begin(), dropped_.end());
    return dropped_;
  }

 private:
  void Drop(size_t i) {
    const SharedLayer& layer = layers_[kept_[i]];
    written_ += layer.used;
    stored_ -= layer.stored - layer.used;
    dropped_.push_back(kept_[i]);
    kept_.erase(kept_.begin() + static_cast<std::ptrdiff_t>(i));
  }

  const std::vector<SharedLayer>& layers_;
  std::vector<size_t> kept_, dropped_;
  double written_, stored_, all_;
};

}  // namespace

bool IsTooMuchNew(double fresh, double all) { return fresh > 0.75 * all; }

std::vector<size_t> LayersToWriteAgain(const std::vector<SharedLayer>& layers, double fresh,
                                       size_t most_layers) {
  Compaction compaction(layers, fresh);
  compaction.DropUnused();
  compaction.DropGarbage();
  compaction.DropSmall(most_layers);
  compaction.DropAllIfLittleIsShared();
  return compaction.dropped();
}

}  // namespace siding
