# Run at the installation: the file `from` becomes lib/siding/NAME-DIGEST, and `link` a link to it. Earlier ones stay.
cmake_path(GET from FILENAME name)
file(SHA256 "${from}" digest)
string(SUBSTRING "${digest}" 0 12 digest)
set(to "${CMAKE_INSTALL_PREFIX}/lib/siding/${name}-${digest}")
include("${CMAKE_CURRENT_LIST_DIR}/InstallByRename.cmake")

set(place "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/${link}")
message(STATUS "Linking: ${place}")
file(CREATE_LINK "../lib/siding/${name}-${digest}" "${place}.new" SYMBOLIC)
file(RENAME "${place}.new" "${place}")
list(APPEND CMAKE_INSTALL_MANIFEST_FILES "${CMAKE_INSTALL_PREFIX}/${link}")
