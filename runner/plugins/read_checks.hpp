// The checks of `headroom plugins check` for a source's reads, in every split. A violation is Error(plugin): what the
// plugin did, and what it has to do instead.
#pragma once

#include <functional>

#include "plugins/check_list.hpp"
#include "plugins/source.hpp"

namespace headroom {

// A read fills every byte of its slots and writes nowhere else. [control]
void require_filled_slots(const Source& source);

// A sample is the same, whichever others are read with it. [control]
void require_pure_reads(const Source& source);

// Without augmentation, a sample is the same for every key. [control]
void require_plain_reads(const Source& source);

// A sample is the same while other threads read. An unsafe read is found only with some luck. [control]
void require_reads_on_threads(const Source& source);

// Fields to standardise are the same when the other fields are not asked for. [control]
void require_reads_of_single_fields(const Source& source);

// A source that says HR_SOURCE_NO_AUGMENT reads the same for every key. [control]
void require_reads_without_keys(const Source& source);

// Runs all checks. A sample that cannot be read fails none of them. `source` may throw DoesNotApply. [control]
void check_reads(CheckList& list, const std::function<const Source&()>& source);

}  // namespace headroom
