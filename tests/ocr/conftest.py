"""OpenCV with one thread, as in the capture process."""

import cv2

cv2.setNumThreads(1)
