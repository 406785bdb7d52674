# What both builds of the example have: the one against an installed heddle, and that of the checkout.
set(HEDDLE_BYTE_SERVER_SOURCES Completions.cpp Dense.cpp Drafts.cpp Engine.cpp GpuAttention.cpp HttpServer.cpp main.cpp Metrics.cpp Model.cpp
  PageCache.cpp Weights.cpp)
