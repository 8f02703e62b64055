// Parents of an image: pages of memory that it shares with earlier images of its task.
//
// CRIU calls the folder "parent" in an image's folder its parent: a page that the image's pagemap does not
// hold itself is looked for there, under the same number of process and address, and so on. In a tier every
// image is flat, and its parents' files are its own, by hard links: "parent-1.pagemap-7.img" is pagemap-7.img
// of its parent, "parent-2.pagemap-7.img" that of its parent's parent. So any image can be deleted, and the
// others stay whole. Earlier images whose pages it does not share, or has itself, are left out: each memory
// has a row of its own.
#pragma once

#include <string>

#include "store/store.h"

namespace siding::store {

// A file of an image itself (0) or of the parent that is so many steps up.
struct ParentFile {
  int up = 0;
  std::string name;
  bool operator==(const ParentFile&) const = default;
};

// More parents are neither made nor read.
inline constexpr int kMostParents = 8;

// "parent-2.pages-1.img" for {2, "pages-1.img"}, and back. What is not of that form is the image's own.
std::string NameOf(const ParentFile& place);
ParentFile ParentFileOf(const std::string& name);

// "42." of 42.3: images of one job may share files.
std::string JobPartOf(const CheckpointId& checkpoint);

// How many parents an image has.
int ParentsOf(const Manifest& manifest);

}  // namespace siding::store
