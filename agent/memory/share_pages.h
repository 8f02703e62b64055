// Each byte once: of the pages of a new image those that its base has as well, at the same address of the
// same process or shared memory, are left out of it, and the base's files become its parents'
// (store/parents.h).
//
// Pages are compared byte by byte, so nothing is believed of the base but what is in its files; and those are
// read and compared with their checksums before they are shared, so that damage to an earlier image does not
// become damage to this one. Costs about two reads of the base and one of the draft, and another one of what
// is written; they are in the page cache where there is room for them.
#pragma once

#include <functional>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/memory/parent_pages.h"
#include "common/units.h"
#include "store/store.h"

namespace siding {

// Less is written whole, and so is a memory of whose pages too few would be shared.
inline constexpr Bytes kLeastToShare{1 << 20};

// For a draft with a base, all of whose files are written, and that is not sealed. A memory whose pages
// cannot be shared stays as it is, whatever the reason. Returns how many bytes of the files that are shared
// now the image does not use. kCancelled if it was called off; that, and any other error, leave a draft that
// must not be sealed. `without`: names of pagemaps that are shared already.
absl::StatusOr<Bytes> SharePages(ImageDraft& draft, const SharingLimits& limits,
                                 const std::set<std::string>& without = {});

// Of the image's metadata: what SharePages() has returned. Absent: nothing.
inline constexpr char kMetadataUnused[] = "unused_bytes";

// What there is of an image when its pages are united: its size, without what it does not use.
Bytes UsedSize(const Manifest& manifest);

// What becomes of files that stay as they are: links to the image's own, where the file system makes some; or
// copies, which may be changed; or those themselves, of an image that is not needed any more.
enum class OtherFiles { kLinked, kCopied, kMoved };

// Makes an image with parents whole: `folder` (which is emptied, if it was there) gets its files, with all
// pages in the image's own. The files are in `image`. It takes as much room as the memories of which pages
// are shared, or on another file system as the whole image. kDataLoss if the image contradicts itself;
// kCancelled if `stop`, which is asked all the time, says true. An error leaves nothing.
//
// CRIU reads images with parents by itself. But then it needs more memory for mappings that no page is of,
// does not read huge pages (MAP_HUGETLB) from parents, and finds parents by names in the mount namespace of
// the restored processes.
absl::Status UnitePages(const Manifest& manifest, const std::string& image, const std::string& folder,
                        const std::function<bool()>& stop, OtherFiles others = OtherFiles::kLinked);

}  // namespace siding
