// Halo rows between ranks, through files in a folder that all ranks see.
//
// A file is written under another name and renamed, so a reader finds all of it or nothing. A rank may be
// frozen, moved or put back to an earlier state at any time, so nothing depends on time: a file's content
// depends on its name alone (the program is deterministic), old files are removed only kKept exchanges later,
// and a rank that has to wait writes its own last files again if they are gone, because a neighbour that was
// put back may need them.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "examples/heat/exchange.h"

namespace heat {

class FileExchange final : public Exchange {
 public:
  // Throws std::runtime_error if the folder cannot be made.
  FileExchange(std::string folder, std::string job, int rank);

  Halo Swap(int64_t number, const Halo& own) override;
  void GiveBlock(const std::vector<double>& block) override;
  std::vector<double> TakeBlock(int from, size_t count) override;

 private:
  static constexpr int64_t kKept = 8;  // exchanges; neighbours are never more than one apart

  // `what` is "up", "down" or "block".
  void Publish(const std::string& what, int64_t number, const std::vector<double>& values);
  // Waits until rank `from` has published it. A file of another size or with a wrong checksum is an error.
  std::vector<double> Await(int from, const std::string& what, int64_t number, size_t count);
  // Removes this rank's files of exchanges long past.
  void Forget(int64_t number);
  std::string Path(int rank, const std::string& what, int64_t number) const;
  void PublishMissing();

  const std::string folder_, job_;
  const int rank_;
  std::deque<std::pair<std::string, std::vector<double>>> published_;  // path and content, the last few
};

// Written whole or not at all.
void WriteWhole(const std::string& path, const std::string& content);

}  // namespace heat
